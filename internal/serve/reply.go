package serve

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"time"
)

const (
	// pieceSize is how much of a file is sent under one deadline, in bytes: a
	// client has stallTime for it. So the slowest that goes is 35 kB/s.
	pieceSize = 2 << 20
	stallTime = time.Minute
)

// reply is the answer to one request. It holds the status back until the first
// byte of the body is there, so that what goes wrong before it can still be said;
// it gives each piece of the body its time; and it hands files through to the
// connection, which has the kernel send them.
type reply struct {
	http.ResponseWriter
	control *http.ResponseController
	stall   time.Duration
	status  int
	sent    bool // the status
	bytes   int64

	mu     sync.Mutex    // of what follows: others look at it, too
	since  time.Time     // since when the client has us wait; zero = it does not
	waited time.Duration // before that, for this piece of pieceSize bytes
	piece  int64         // what it took of it
	ended  bool          // it gets no more
}

func newReply(w http.ResponseWriter, stall time.Duration) *reply {
	return &reply{ResponseWriter: w, control: http.NewResponseController(w), stall: stall}
}

// WriteHeader implements http.ResponseWriter.
func (r *reply) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

// commit sends the status.
func (r *reply) commit() {
	r.WriteHeader(http.StatusOK)
	if !r.sent {
		r.sent = true
		r.ResponseWriter.WriteHeader(r.status)
	}
}

// errEnded ends an answer whose client has taken it too slowly.
var errEnded = errors.New("the client is slow, and another one waits for its place")

// begin gives the client time for what is written next.
func (r *reply) begin() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return errEnded
	}
	r.since = time.Now()
	_ = r.control.SetWriteDeadline(r.since.Add(r.stall)) // a recorder has none
	return nil
}

// took notes that the client took n bytes.
func (r *reply) took(n int64) {
	r.bytes += n
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waited += time.Since(r.since)
	r.since = time.Time{}
	if r.piece += n; r.piece >= pieceSize {
		r.piece, r.waited = 0, 0
	}
}

// waits is for how long the client has had us wait for the piece under way.
func (r *reply) waits(now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.ended:
		return -1
	case r.since.IsZero():
		return r.waited
	}
	return r.waited + now.Sub(r.since)
}

// end cuts the answer off, from outside.
func (r *reply) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	_ = r.control.SetWriteDeadline(time.Unix(1, 0)) // a recorder has none
}

// Write implements io.Writer.
func (r *reply) Write(b []byte) (sent int, err error) {
	r.commit()
	for sent < len(b) && err == nil {
		if err = r.begin(); err != nil {
			return sent, err
		}
		var n int
		n, err = r.ResponseWriter.Write(b[sent:min(len(b), sent+pieceSize)])
		r.took(int64(n))
		sent += n
	}
	return sent, err
}

// ReadFrom implements io.ReaderFrom: http.ServeContent sends a content by it.
func (r *reply) ReadFrom(src io.Reader) (int64, error) {
	part, ok := src.(*io.LimitedReader)
	if !ok {
		return io.Copy(struct{ io.Writer }{r}, src)
	}
	c, ok := part.R.(*content)
	if !ok {
		return io.Copy(struct{ io.Writer }{r}, src)
	}
	body, err := c.open(part.N)
	if err != nil {
		return 0, err
	}
	defer body.Close()
	if file, ok := body.(*os.File); ok {
		return r.sendFile(file, part.N, c.zeroCopy)
	}
	return r.sendBody(c, body, part.N)
}

// sendFile sends n bytes of a file, by the kernel if the connection can.
func (r *reply) sendFile(file *os.File, n int64, zeroCopy bool) (sent int64, err error) {
	to, ok := r.ResponseWriter.(io.ReaderFrom)
	var from io.Reader = file
	if !zeroCopy {
		from = struct{ io.Reader }{file} // it is no file any more
	}
	r.commit()
	for sent < n {
		if err := r.begin(); err != nil {
			return sent, err
		}
		// Exactly this pair of types is what the library knows how to hand on.
		piece := &io.LimitedReader{R: from, N: min(pieceSize, n-sent)}
		var m int64
		if ok {
			m, err = to.ReadFrom(piece)
		} else {
			m, err = io.Copy(r.ResponseWriter, piece)
		}
		r.took(m)
		sent += m
		if err != nil {
			return sent, err
		}
		if m == 0 {
			return sent, io.ErrUnexpectedEOF // the file has become shorter
		}
	}
	return sent, nil
}

// bodyBuffer is how much of what comes from a store is passed on at once, in bytes.
const bodyBuffer = 64 << 10

// sendBody passes n bytes on that come from a store. The first of them come before
// the status goes.
func (r *reply) sendBody(c *content, body io.Reader, n int64) (sent int64, err error) {
	buffer := make([]byte, min(bodyBuffer, n))
	for sent < n {
		got, err := io.ReadFull(body, buffer[:min(int64(len(buffer)), n-sent)])
		if err != nil {
			return sent, c.broke(err)
		}
		m, err := r.Write(buffer[:got])
		sent += int64(m)
		if err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// finish sends a status that has no body, and gives the client time for what the
// library has not written yet: the deadline may be one of long ago, or of the
// request before.
func (r *reply) finish() {
	if r.status != 0 {
		r.commit()
	}
	if r.begin() == nil {
		r.took(0)
	}
}

// refuse answers with a status and one line of JSON, unless something has been
// sent already.
func (r *reply) refuse(status int, text string) {
	if r.sent {
		return
	}
	h := r.Header()
	for _, name := range []string{"Content-Length", "Content-Range", "Accept-Ranges", "Etag", "Last-Modified", "Repr-Digest", "Content-Disposition"} {
		h.Del(name)
	}
	if status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests {
		h.Set("Retry-After", "1")
	}
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	r.status = status
	line, err := json.Marshal(struct {
		Error string `json:"error"`
	}{text})
	if err == nil {
		_, _ = r.Write(append(line, '\n')) // the client is gone; nobody to tell
	}
}
