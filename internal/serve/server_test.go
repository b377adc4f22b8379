package serve

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"korvet-offload/segment"
)

const token = "a token of some letters"

func TestConfigValidate(t *testing.T) {
	for _, tt := range []struct {
		change func(*Config)
		want   string
	}{
		{func(*Config) {}, "[]"},
		{func(c *Config) { c.Address = ":0" }, "[]"},
		{func(c *Config) { c.Address = "" }, `[serve.address "": want host:port, such as 127.0.0.1:9478 or :9478]`},
		{func(c *Config) { c.Address = "h:99999" }, `[serve.address "h:99999": want host:port, such as 127.0.0.1:9478 or :9478]`},
		{func(c *Config) { c.Token = "fifteen letters" }, "[serve.token: it is shorter than 16 characters, and can be guessed; `openssl rand -hex 24` makes a good one]"},
		{func(c *Config) { c.CertFile = "x" }, "[serve.key-file: it belongs to serve.cert-file, and is missing: want the PEM file of the certificate's key]"},
		{func(c *Config) { c.KeyFile = "x" }, "[serve.cert-file: it belongs to serve.key-file, and is missing: want the PEM file of the certificate]"},
		{func(c *Config) { c.Connections, c.Rate = 0, -1 }, "[serve.connections 0: want 1 or more serve.rate -1: want 1 or more, or 0 for no limit]"},
	} {
		c := DefaultConfig()
		tt.change(&c)
		if got := fmt.Sprint(c.Validate()); got != tt.want {
			t.Errorf("%+v: %s, want %s", c, got, tt.want)
		}
	}
}

func TestNothingWithoutTheToken(t *testing.T) {
	w := newWorld(t)
	w.put(orders, 7, bytesOf(10))
	s := w.start(func(c *Config) { c.Token = token })
	for _, path := range []string{"/", "/v1/topics", "/v1/streams", file7, "/v1/topics/orders/0/messages", "/nothing"} {
		for _, h := range []string{"", "Authorization: Bearer wrong", "Authorization: Bearer " + token + "x", "Authorization: Basic " + token, "Authorization: " + token, "Cookie: korvet-offload=" + token} {
			headers := []string{"X: y"}
			if h != "" {
				headers = []string{h}
			}
			if a := s.get(path, headers...); a.status != 401 || a.header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s %s: %d", path, h, a.status)
			}
		}
	}
	if a := s.get(file7, "Authorization: bearer "+token); a.status != 200 {
		t.Error(a.status)
	}
	if a := s.get("/healthz"); a.status != 200 || string(a.body) != "ok\n" {
		t.Errorf("%d %s", a.status, a.body)
	}
	if len(w.opened) != 1 {
		t.Error(w.opened)
	}
}

func TestNamesOfOthersAreRefused(t *testing.T) {
	w := newWorld(t)
	s := w.start(func(*Config) {})
	for host, want := range map[string]int{"localhost": 200, "127.0.0.1:1": 200, "evil.example": 421, "localhost.evil.example:80": 421} {
		if a := s.get("/v1/topics", "Host: "+host); a.status != want {
			t.Errorf("%s: %d", host, a.status)
		}
	}
	s = w.start(func(c *Config) { c.Token = token })
	if a := s.get("/v1/topics", "Host: evil.example", "Authorization: Bearer "+token); a.status != 200 {
		t.Errorf("with a token: %d", a.status)
	}
}

func TestNothingCanBeChanged(t *testing.T) {
	w := newWorld(t)
	w.put(orders, 7, bytesOf(10))
	s := w.start(func(*Config) {})
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "MOVE"} {
		for _, path := range []string{file7, "/healthz"} {
			if a := s.ask(method, path); a.status != 405 || a.header.Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s: %d", method, path, a.status)
			}
		}
	}
	for _, head := range []string{"Content-Length: 5\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"} {
		if line := s.raw("GET " + file7 + " HTTP/1.1\r\nHost: localhost\r\n" + head); !strings.Contains(line, " 413 ") {
			t.Errorf("a request with a body: %s", line)
		}
	}
	if line := s.raw("GET " + file7 + " HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\n"); !strings.Contains(line, " 431 ") {
		t.Errorf("a large header: %s", line)
	}
}

// raw sends a text and gives the first line of the answer.
func (s *site) raw(text string) string {
	s.t.Helper()
	c, err := net.Dial("tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, text) // the server may have hung up before all of it
	line, _ := bufio.NewReader(c).ReadString('\n')
	return line
}

func TestTooManyRequestsOfOneAddress(t *testing.T) {
	w := newWorld(t)
	s := w.start(func(c *Config) { c.Rate = 5 })
	counts := map[int]int{}
	for range 20 {
		a := s.get("/v1/topics")
		counts[a.status]++
		if a.status == 429 && a.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		if h := s.get("/healthz"); h.status != 200 {
			t.Errorf("/healthz: %d", h.status)
		}
	}
	if counts[200] < 5 || counts[429] < 5 {
		t.Error(counts)
	}
}

func TestRates(t *testing.T) {
	now := time.Unix(1000, 0)
	r := newRates(2, func() time.Time { return now })
	ask := func(remote string, want ...bool) {
		t.Helper()
		for i, w := range want {
			if got := r.take(remote); got != w {
				t.Errorf("%s, question %d: %v", remote, i, got)
			}
		}
	}
	ask("1.2.3.4:1", true, true, false)
	ask("1.2.3.4:2", false)
	ask("1.2.3.5:1", true)
	ask("[2001:db8::1]:1", true, true, false)
	ask("[2001:db8::2:1]:1", false) // the same network
	ask("[2001:db8:0:1::1]:1", true)
	ask("[::ffff:1.2.3.4]:1", false)
	now = now.Add(500 * time.Millisecond)
	ask("1.2.3.4:1", true, false)
	now = now.Add(time.Hour)
	ask("1.2.3.4:1", true, true, false)
	ask("nonsense", true, true, false)
	// A crowd does not fill the memory, nor give anybody a fresh account.
	for i := range 3 * maxAddresses {
		r.take(fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255))
	}
	if len(r.clients) > maxAddresses {
		t.Errorf("%d accounts", len(r.clients))
	}
	ask("1.2.3.4:1", false)
	ask("9.9.9.9:1", false) // no account is left, and that of the crowd is used up
	now = now.Add(2 * time.Second)
	ask("9.9.9.9:1", true, true, false)
	if len(r.clients) > 2 {
		t.Errorf("%d accounts after the crowd has gone", len(r.clients))
	}
}

// Connections are bounded; one that is idle gives way, and others wait.
func TestConnectionsAreBounded(t *testing.T) {
	w := newWorld(t)
	entered, leave := make(chan struct{}, 3), make(chan struct{})
	w.read = func(context.Context, segment.Partition, Query, func([]byte) error) error {
		entered <- struct{}{}
		<-leave
		return nil
	}
	s := w.start(func(c *Config) { c.Connections = 2 })
	dial := func() (net.Conn, *bufio.Reader) {
		c, err := net.Dial("tcp", s.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c, bufio.NewReader(c)
	}
	status := func(r *bufio.Reader) int {
		a, err := http.ReadResponse(r, nil)
		if err != nil {
			return -1
		}
		_, _ = io.Copy(io.Discard, a.Body)
		return a.StatusCode
	}
	const health, busy = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET /v1/topics/orders/0/messages HTTP/1.1\r\nHost: localhost\r\n\r\n"
	idle, idleReader := dial()
	_, _ = io.WriteString(idle, health)
	if n := status(idleReader); n != 200 {
		t.Fatal(n)
	}
	first, firstReader := dial()
	_, _ = io.WriteString(first, busy)
	<-entered
	second, secondReader := dial() // the idle one gives way
	_, _ = io.WriteString(second, busy)
	<-entered
	if _, err := idleReader.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the idle connection: %v", err)
	}
	third, thirdReader := dial() // it waits
	_, _ = io.WriteString(third, health)
	_ = third.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if _, err := thirdReader.Peek(1); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the third connection is answered: %v", err)
	}
	_ = third.SetReadDeadline(time.Time{})
	close(leave)
	for i, r := range []*bufio.Reader{firstReader, secondReader, thirdReader} {
		if n := status(r); n != 200 {
			t.Errorf("connection %d: %d", i, n)
		}
	}
}

// Who takes nothing is cut off; who takes slowly is not.
func TestSlowClients(t *testing.T) {
	content := bytesOf(24 << 20)
	for _, kind := range []string{"kernel", "copied", "store"} {
		w := newWorld(t)
		w.put(orders, 7, content)
		w.away = kind == "store"
		s := w.start(func(c *Config) { c.ZeroCopy = kind == "kernel" }, func(s *server) { s.stall = 300 * time.Millisecond })
		c, err := net.Dial("tcp", s.address)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.(*net.TCPConn).SetReadBuffer(4096)
		_, _ = io.WriteString(c, "GET "+file7+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
		// It is over though nothing was read; what is in the buffers of the system
		// was sent.
		if a := s.awaitAnswered(1)[0]; a.Bytes >= int64(len(content)) || a.Status != 200 {
			t.Errorf("%s: %+v", kind, a)
		}
		c.Close()
	}
}

// awaitAnswered waits until so many requests are over.
func (s *site) awaitAnswered(n int) []Answered {
	s.t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		s.mu.Lock()
		all := append([]Answered{}, s.answered...)
		s.mu.Unlock()
		if len(all) >= n {
			return all
		}
		select {
		case <-deadline:
			s.t.Fatalf("%d of %d requests are over", len(all), n)
		case <-time.After(time.Millisecond):
		}
	}
}

// When it stops, answers under way end; what does not end in time is cut off, and
// then nobody uses the parts any more.
func TestGracefulStop(t *testing.T) {
	w := newWorld(t)
	begun, goOn := make(chan struct{}, 2), make(chan struct{})
	over := false
	w.read = func(ctx context.Context, p segment.Partition, _ Query, line func([]byte) error) error {
		if err := line(bytes.Repeat([]byte("x"), lineBuffer)); err != nil {
			return err
		}
		_ = line([]byte("\n"))
		begun <- struct{}{}
		if p.Number == 0 {
			<-goOn
			return line([]byte("end\n"))
		}
		<-ctx.Done() // it hangs until it is cut off
		over = true
		return ctx.Err()
	}
	s := w.start(func(*Config) {})
	s.stop() // the one of the test is made by hand
	<-s.ended
	s.ended <- nil

	listening, ended := make(chan net.Addr, 1), make(chan error, 1)
	c := DefaultConfig()
	c.Address = "127.0.0.1:0"
	server := newServer(c, Parts{Layout: w.layout, Manifests: w, Directory: w, Messages: w, Files: w}, w.events(listening))
	ctx, stop := context.WithCancel(t.Context())
	go func() { ended <- server.serve(ctx, 300*time.Millisecond) }()
	s.address = (<-listening).String()
	answers := make(chan got, 2)
	for n := range 2 {
		go func() { answers <- s.get(fmt.Sprintf("/v1/topics/orders/%d/messages", n)) }()
		<-begun
	}
	stop()
	close(goOn)
	whole, cut := <-answers, <-answers
	if whole.err != nil || !bytes.HasSuffix(whole.body, []byte("end\n")) {
		t.Errorf("the one that ends: %v", whole.err)
	}
	if cut.err == nil {
		t.Error("the one that hangs looks whole")
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if !over {
		t.Error("the server has ended, and somebody still reads")
	}
	if _, err := net.Dial("tcp", s.address); err == nil {
		t.Error("it still listens")
	}
}

func TestAddressInUse(t *testing.T) {
	w := newWorld(t)
	s := w.start(func(*Config) {})
	c := DefaultConfig()
	c.Address = s.address
	err := Serve(t.Context(), c, s.server.parts, w.events(make(chan net.Addr, 1)))
	if err == nil || !strings.Contains(err.Error(), "korvet.storage.offload.serve.address") {
		t.Error(err)
	}
}

// With TLS files are sent too, and no HTTP/2 is spoken.
func TestTLS(t *testing.T) {
	w := newWorld(t)
	content := bytesOf(100_000)
	w.put(orders, 7, content)
	cert, key := certificate(t)
	s := w.start(func(c *Config) { c.CertFile, c.KeyFile = cert, key })
	client := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	a, err := client.Get("https://" + s.address + file7)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	if err != nil || !bytes.Equal(body, content) || a.ProtoMajor != 1 {
		t.Errorf("%v, %d bytes, %s", err, len(body), a.Proto)
	}
	c := DefaultConfig()
	c.Address, c.CertFile, c.KeyFile = "127.0.0.1:0", key, key
	if err := Serve(t.Context(), c, s.server.parts, w.events(nil)); err == nil || !strings.Contains(err.Error(), "serve.cert-file") {
		t.Error(err)
	}
}

func certificate(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: cert}, keyFile: {Type: "PRIVATE KEY", Bytes: raw}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}
