package s3sink

import (
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// trash is an S3 server for deletions: it notes what goes, and by which way.
type trash struct {
	mu      sync.Mutex
	batches [][]string // keys below the root
	singles []string
	refuse  func(key string) (code, message string) // nil = nothing
}

// asked reads the keys of a batch.
func asked(r *http.Request) []string {
	var in struct {
		Quiet  bool
		Object []struct{ Key string }
	}
	if err := xml.NewDecoder(r.Body).Decode(&in); err != nil || in.Quiet {
		panic(fmt.Sprintf("batch: %v, quiet %v", err, in.Quiet))
	}
	keys := make([]string, len(in.Object))
	for i, o := range in.Object {
		keys[i] = strings.TrimPrefix(o.Key, "root/")
	}
	return keys
}

// reply is that to a batch in which each key has a code, or "" if it is gone.
func reply(keys []string, refuse func(string) (code, message string)) string {
	var s strings.Builder
	s.WriteString(xml.Header + "<DeleteResult>")
	for _, key := range keys {
		if code, message := refuse(key); code != "" {
			fmt.Fprintf(&s, "<Error><Key>root/%s</Key><Code>%s</Code><Message>%s</Message></Error>", key, code, message)
		} else {
			fmt.Fprintf(&s, "<Deleted><Key>root/%s</Key></Deleted>", key)
		}
	}
	return s.String() + "</DeleteResult>"
}

func nothing(string) (code, message string) { return "", "" }

// batch takes a batch whole, or lets refuse say which keys stay.
func (d *trash) batch(w http.ResponseWriter, r *http.Request) {
	keys := asked(r)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.batches = append(d.batches, keys)
	refuse := d.refuse
	if refuse == nil {
		refuse = nothing
	}
	_, _ = io.WriteString(w, reply(keys, refuse))
}

func (d *trash) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		d.batch(w, r)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.singles = append(d.singles, strings.TrimPrefix(r.URL.Path, "/bucket/root/"))
	w.WriteHeader(http.StatusNoContent)
}

// ways says how many keys each batch had, and how many went singly.
func (d *trash) ways() string {
	var sizes []int
	for _, b := range d.batches {
		sizes = append(sizes, len(b))
	}
	return fmt.Sprint(sizes, len(d.singles))
}

func numbered(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("k%d", i)
	}
	return keys
}

// classes are those of the errors that are none, each with its key.
func classes(keys []string, errs []error) string {
	var s []string
	for i, err := range errs {
		if err != nil {
			s = append(s, keys[i]+":"+string(ClassOf(err)))
		}
	}
	return strings.Join(s, " ")
}

// mustAnswer deletes n keys and compares the answers.
func mustAnswer(t *testing.T, b *bench, n int, want string) []error {
	t.Helper()
	keys := numbered(n)
	errs := b.Delete(t.Context(), keys)
	if len(errs) != n {
		t.Fatalf("%d answers for %d keys", len(errs), n)
	}
	if got := classes(keys, errs); got != want {
		t.Fatalf("errors are %q, want %q; the first is %v", got, want, firstError(errs))
	}
	return errs
}

func firstError(errs []error) error {
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		return errs[i]
	}
	return nil
}

func TestDeleteInBatches(t *testing.T) {
	d := &trash{}
	b := newBench(t, Limits{}, d.ServeHTTP)
	for n, want := range map[int]string{0: "[] 0", 1: "[] 1", 2: "[2] 0", 1000: "[1000] 0", 1001: "[1000] 1", 2500: "[1000 1000 500] 0"} {
		d.batches, d.singles = nil, nil
		mustAnswer(t, b, n, "")
		if got := d.ways(); got != want {
			t.Errorf("%d keys went as %s, want %s", n, got, want)
		}
	}
	d.batches = nil
	if errs := b.Delete(t.Context(), []string{"a", "b", "a", "a"}); firstError(errs) != nil || len(errs) != 4 || d.ways()[:3] != "[2]" {
		t.Errorf("duplicates went as %s: %v", d.ways(), errs)
	}
}

//fault:store | A batch delete is answered 200 with an error for one key among ten | A stub, five codes | That key alone has the error, the others are gone
func TestOneOfTenIsRefused(t *testing.T) {
	for code, c := range map[string]struct {
		message string
		class   Class
		says    string
	}{
		"AccessDenied":   {"Access Denied", ClassDenied, "allow s3:DeleteObject on the prefix"},
		"FileImmutable":  {"", ClassLocked, "has to end first"},
		"InvalidRequest": {"Object is WORM protected and cannot be overwritten", ClassLocked, "has to end first"},
		"NoSuchKey":      {"", "", ""},
		"Odd":            {"who knows", ClassOther, "who knows"},
	} {
		d := &trash{refuse: func(key string) (string, string) {
			if key == "k3" {
				return code, c.message
			}
			return "", ""
		}}
		b := newBench(t, Limits{}, d.ServeHTTP)
		want := ""
		if c.class != "" {
			want = "k3:" + string(c.class)
		}
		errs := mustAnswer(t, b, 10, want)
		if errs[3] != nil && (!strings.Contains(errs[3].Error(), c.says) || !strings.Contains(errs[3].Error(), "s3://bucket/root/k3: ")) {
			t.Errorf("%s: %v", code, errs[3])
		}
		if len(b.stub.requests()) != 1 {
			t.Errorf("%s: %d requests", code, len(b.stub.requests()))
		}
	}
}

// TestOnlyBusyKeysAreAskedForAgain: what the store could not do just then is
// repeated, and only that.
//
//fault:store | Some keys of a batch delete fail for the moment | A stub that answers SlowDown and InternalError for single keys | Only these are asked for again
func TestOnlyBusyKeysAreAskedForAgain(t *testing.T) {
	tries := map[string]int{}
	d := &trash{refuse: func(key string) (string, string) {
		tries[key]++
		switch {
		case key == "k1" && tries[key] < 3:
			return "SlowDown", "Please reduce your request rate."
		case key == "k2":
			return "InternalError", "We encountered an internal error."
		case key == "k4":
			return "AccessDenied", "Access Denied"
		}
		return "", ""
	}}
	b := newBench(t, Limits{Attempts: 2}, d.ServeHTTP)
	mustAnswer(t, b, 1500, "k2:unavailable k4:denied")
	if got := d.ways(); got != "[1000 2 2 1 500] 0" {
		t.Errorf("it went as %s", got)
	}
	if e := b.retries(); len(e) != 3 || e[0].Class != ClassThrottled || e[2].Class != ClassUnavailable {
		t.Errorf("events: %+v", e)
	}
}

//fault:store | A batch delete is throttled, then answered 200 with an error for all | A stub | Repeated after the time that was said
func TestBatchThatIsThrottled(t *testing.T) {
	d := &trash{}
	b := newBench(t, Limits{}, s3Error(503, "SlowDown", "", "Retry-After", "7"), s3Error(200, "InternalError", ""), d.ServeHTTP)
	mustAnswer(t, b, 10, "")
	if len(b.waits) != 2 || b.waits[0] != 7*time.Second || d.ways() != "[10] 0" {
		t.Errorf("waits %v, then %s", b.waits, d.ways())
	}
	b = newBench(t, Limits{}, s3Error(503, "SlowDown", "", "Retry-After", "15"))
	errs := b.Delete(t.Context(), numbered(2500))
	if slices.ContainsFunc(errs, func(err error) bool { return ClassOf(err) != ClassThrottled }) || len(b.stub.requests()) != 3 {
		t.Errorf("%d requests: %v", len(b.stub.requests()), errs[0])
	}
}

// TestBusyKeyThenBusyStore: the keys of a batch that was answered in part keep
// their answers.
//
//fault:store | A batch delete is answered for some keys, then the store has no time | A stub | Each key keeps the answer it got
func TestBusyKeyThenBusyStore(t *testing.T) {
	d := &trash{refuse: func(key string) (string, string) {
		if key == "k1" {
			return "InternalError", ""
		}
		return "", ""
	}}
	b := newBench(t, Limits{}, d.ServeHTTP, s3Error(503, "SlowDown", "", "Retry-After", "15"))
	errs := b.Delete(t.Context(), numbered(2500))
	for i, err := range errs {
		if want := i == 1 || i >= maxBatch; want != (ClassOf(err) == ClassThrottled) || !want && err != nil {
			t.Fatalf("key %d: %v", i, err)
		}
	}
	if n := len(b.stub.requests()); n != 4 {
		t.Errorf("%d requests", n)
	}
}

// TestDeletedAndRefused: a reply that says both is not believed.
//
//fault:store | A batch delete names a key as deleted and as refused | A stub | It counts as refused
func TestDeletedAndRefused(t *testing.T) {
	const said = `<DeleteResult><Error><Key>root/k0</Key><Code>AccessDenied</Code></Error>` +
		`<Deleted><Key>root/k0</Key></Deleted><Deleted><Key>root/k1</Key></Deleted></DeleteResult>`
	b := newBench(t, Limits{}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, said)
	})
	mustAnswer(t, b, 2, "k0:denied")
}

// A reply that is cut says nothing of any key, though it names some.
//
//fault:network | The answer to a batch delete is cut, empty, or a proxy's page | Stubs for each | No key counts as deleted by it
func TestReplyIsCut(t *testing.T) {
	whole := reply(numbered(10), nothing)
	for name, bad := range map[string]http.HandlerFunc{
		"XML":   func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, whole[:len(whole)/2]) },
		"empty": func(http.ResponseWriter, *http.Request) {},
		"other": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "<html>Welcome to the Wi-Fi</html>")
		},
		"connection": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(whole)))
			_, _ = io.WriteString(w, whole[:len(whole)/2])
			panic(http.ErrAbortHandler)
		},
	} {
		take := func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			bad(w, r)
		}
		d := &trash{}
		mustAnswer(t, newBench(t, Limits{}, take, take, d.ServeHTTP), 10, "")
		if d.ways() != "[10] 0" {
			t.Errorf("%s: in the end it went as %s", name, d.ways())
		}
		b := newBench(t, Limits{}, take)
		errs := b.Delete(t.Context(), numbered(2))
		if ClassOf(errs[0]) != ClassUnavailable || ClassOf(errs[1]) != ClassUnavailable || len(b.stub.requests()) != 5 {
			t.Errorf("%s: after %d requests: %v", name, len(b.stub.requests()), errs)
		}
	}
}

// TestReplyLeavesKeysOut: a store that says nothing of a key has not deleted
// it until it says so.
//
//fault:store | A batch delete is answered 200 and some keys, or all, are not in the answer | A stub | They are deleted singly, and count as gone only then
func TestReplyLeavesKeysOut(t *testing.T) {
	d := &trash{}
	b := newBench(t, Limits{}, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/k2") {
			s3Error(403, "AccessDenied", "Access Denied")(w, r)
			return
		}
		if r.Method == http.MethodDelete {
			d.ServeHTTP(w, r)
			return
		}
		var told []string
		for _, key := range asked(r) {
			if key != "k2" && key != "k5" {
				told = append(told, key)
			}
		}
		_, _ = io.WriteString(w, reply(told, nothing))
	})
	mustAnswer(t, b, 10, "k2:denied")
	if got := fmt.Sprint(d.singles); got != "[k5]" {
		t.Errorf("singly went %s", got)
	}
	mustAnswer(t, newBench(t, Limits{}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Method == http.MethodPost {
			_, _ = io.WriteString(w, reply(nil, nothing))
			return
		}
		s3Error(500, "InternalError", "")(w, r)
	}), 2, "k0:unavailable k1:unavailable")
}
