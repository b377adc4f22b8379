package redisstore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/redis/rueidis"

	"korvet-offload/segment"
)

// Class says what kind of thing went wrong, for metrics and back-off. The
// list is closed.
type Class string

// The classes of errors.
const (
	Unavailable   Class = "unavailable"    // refused, reset, timed out, loading, read-only, failing over: later it may work
	Auth          Class = "auth"           // the server does not accept the user or the password
	Permission    Class = "permission"     // the user's ACL lacks a command or a key
	WrongType     Class = "wrong-type"     // the key holds something else
	NoMemory      Class = "no-memory"      // maxmemory is reached and nothing may be evicted
	OutputLimit   Class = "output-limit"   // the server cuts even a reply of one entry
	WrongMode     Class = "wrong-mode"     // cluster node without korvet.redis.cluster, or the other way round
	TLS           Class = "tls"            // no TLS on the other side, or a certificate that is not trusted
	Protocol      Class = "protocol"       // a reply that makes no sense
	NotReplicated Class = "not-replicated" // a durable change that was made, and not confirmed by all that should
	Other         Class = "other"          // any other error reply
)

// Classes lists every class, in the order of the documentation.
func Classes() []Class {
	return []Class{Unavailable, Auth, Permission, WrongType, NoMemory, OutputLimit, WrongMode, TLS, Protocol, NotReplicated, Other}
}

// Error is what every call of this package returns when Redis did not do
// what it was asked. Its text is one line and never holds the password.
type Error struct {
	Op    string // the command, in upper case; CONNECT for a connection that was not made
	Key   string // the key; "" for a command that has none
	Class Class
	Err   error
}

func (e *Error) Error() string {
	text := e.Op
	if e.Key != "" {
		text += " " + e.Key
	}
	text = "redis " + text + ": " + e.Err.Error()
	if advice := adviceOf(e.Class, e.Err); advice != "" {
		text += " (" + advice + ")"
	}
	return text
}

// advised is an error that says itself what to do.
type advised struct{ error }

func (e advised) Unwrap() error { return e.error }

func (e *Error) Unwrap() error { return e.Err }

// Advice is what to do about an error that another user of the client got, the
// lease for one; "" where nothing is known, or where the error is an *Error,
// which says so itself.
func Advice(err error) string {
	if err == nil || errors.As(err, new(*Error)) {
		return ""
	}
	return adviceOf(classify(err), err)
}

func adviceOf(class Class, err error) string {
	if errors.As(err, new(advised)) {
		return ""
	}
	if errors.Is(err, rueidis.ErrNoSlot) {
		return adviceOnRefusal("CLUSTERDOWN ")
	}
	if reply, ok := replyText(err); ok && class == Unavailable {
		return adviceOnRefusal(reply)
	}
	return class.advice()
}

// adviceOnRefusal is what to do about a server that refuses for now. BUSY and
// MISCONF say it themselves.
func adviceOnRefusal(reply string) string {
	for word, advice := range map[string]string{
		"LOADING":     "it goes on by itself when the server has loaded its data",
		"READONLY":    "the server is a replica: give the address of the primary, or make it the primary again",
		"MASTERDOWN":  "the server is a replica whose primary is away: give the address of the primary",
		"CLUSTERDOWN": "slots of the cluster have no node: see CLUSTER INFO",
		"NOREPLICAS":  "connect replicas, or lower the server's min-replicas-to-write",
	} {
		if strings.Contains(reply, word+" ") {
			return advice
		}
	}
	return ""
}

// advice is what to do about errors of a class where the message itself does
// not say it.
func (c Class) advice() string {
	switch c {
	case Auth:
		return "check korvet.redis.username and korvet.redis.password, or those in korvet.redis.uri"
	case NoMemory:
		return "raise the server's maxmemory"
	case WrongMode:
		return "set korvet.redis.cluster to true for a Redis Cluster, to false for a single server"
	case Protocol:
		return "what answers does not behave like Redis 6.2 or later: see what listens there, and what stands in between"
	case TLS:
		return "use rediss:// for a TLS port and redis:// for a plain one; name the authority's certificate in korvet.redis.ca-file"
	}
	return ""
}

// ClassOf is the class of an error of this package; Other for any other
// error, "" for nil.
func ClassOf(err error) Class {
	var e *Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.Class
	}
	return Other
}

// errReply is an error reply read by the direct reader.
type errReply string

func (e errReply) Error() string { return string(e) }

// hide takes the password out of an error reply: a server that does not know
// a command repeats its arguments.
func hide(err error, password string) error {
	reply, ok := replyText(err)
	if !ok || password == "" || !strings.Contains(reply, password) {
		return err
	}
	return errReply(strings.ReplaceAll(reply, password, "***"))
}

// errProtocol begins every message about a reply that makes no sense.
var errProtocol = errors.New("reply breaks the protocol")

// errTimeout stands in for the many ways in which a deadline shows.
var errTimeout = errors.New("no answer in time")

// wrap makes an *Error of what a command gave; nil stays nil. A context that
// the caller ended comes back as it is, so that nobody counts it as a fault.
func wrap(ctx context.Context, op, key string, err error) error {
	if err == nil {
		return nil
	}
	if cause := ctx.Err(); cause != nil {
		return cause
	}
	var done *Error
	if errors.As(err, &done) {
		if done.Op != op && (done.Op == opConnect || done.Op == opSentinel) {
			return &Error{Op: op, Key: key, Class: done.Class, Err: advised{err}}
		}
		return err
	}
	class := classify(err)
	switch {
	case class == WrongType && ofStream(op):
		err = fmt.Errorf("%w: %w", segment.ErrWrongType, err)
	case class == Permission:
		err = fmt.Errorf("%w (the user's ACL needs +%s, and a ~ rule for the key)", err, aclNeeds(op))
	case isTimeout(err):
		err = errTimeout
	case errors.Is(err, io.EOF):
		err = errors.New(err.Error()) // to a page's reader io.EOF is the end of the stream
	}
	return &Error{Op: op, Key: key, Class: class, Err: err}
}

// ofStream says whether a command works on streams.
func ofStream(op string) bool { return op[0] == 'X' || op == opRemove }

// aclNeeds are the commands that the user needs for a command: those inside a
// script count as well.
func aclNeeds(op string) string {
	switch op {
	case opChange:
		return "eval +evalsha +hget +hset +hdel +hlen"
	case opRemove:
		return "eval +evalsha +xinfo|stream +unlink"
	case opInfo:
		return "eval +evalsha +xinfo|stream"
	case opTrim:
		return "eval +evalsha +xrange +xtrim"
	}
	return aclName(op)
}

// aclName is a command as ACL rules write it: "XINFO STREAM" is xinfo|stream.
func aclName(op string) string { return strings.ReplaceAll(strings.ToLower(op), " ", "|") }

// classify sorts an error of either reader or of the general client.
func classify(err error) Class {
	if reply, ok := replyText(err); ok {
		return classifyReply(reply)
	}
	switch {
	case errors.Is(err, errProtocol), rueidis.IsParseErr(err), rueidis.IsRedisNil(err):
		return Protocol
	case isTLS(err):
		return TLS
	case isTimeout(err), isLost(err), isRefused(err), errors.Is(err, rueidis.ErrNoSlot):
		return Unavailable
	}
	return Other
}

func replyText(err error) (string, bool) {
	var own errReply
	if errors.As(err, &own) {
		return string(own), true
	}
	var theirs *rueidis.RedisError
	if errors.As(err, &theirs) && !theirs.IsNil() {
		return theirs.Error(), true
	}
	return "", false
}

// replyClass is the class of an error reply by its first word.
func replyClass(word string) (Class, bool) {
	switch word {
	case "LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "BUSY", "MISCONF", "NOREPLICAS":
		return Unavailable, true
	case "WRONGPASS", "NOAUTH":
		return Auth, true
	case "NOPERM":
		return Permission, true
	case "WRONGTYPE":
		return WrongType, true
	case "OOM":
		return NoMemory, true
	case "MOVED", "ASK", "CROSSSLOT":
		return WrongMode, true
	}
	return Other, false
}

func classifyReply(reply string) Class {
	word, rest, _ := strings.Cut(reply, " ")
	if class, ok := replyClass(word); ok {
		return class
	}
	switch {
	case strings.Contains(rest, "cluster support disabled"):
		return WrongMode
	case strings.Contains(rest, "AUTH <password> called without"), strings.Contains(rest, "invalid password"):
		return Auth
	case strings.Contains(rest, "max number of clients"):
		return Unavailable
	}
	// A script that meets an error reply puts words of its own around it.
	for _, inner := range []string{"READONLY", "WRONGTYPE", "OOM", "NOPERM", "MISCONF", "NOREPLICAS", "MASTERDOWN", "CLUSTERDOWN", "LOADING"} {
		if strings.Contains(reply, inner+" ") {
			class, _ := replyClass(inner)
			return class
		}
	}
	for _, text := range []string{"can't run this command or subcommand", "can't access at least one of the keys", "no permissions", "ACL failure in script"} {
		if strings.Contains(reply, text) {
			return Permission
		}
	}
	return Other
}

func isTLS(err error) bool {
	var (
		header  tls.RecordHeaderError
		unknown x509.UnknownAuthorityError
		host    x509.HostnameError
		invalid x509.CertificateInvalidError
		verify  *tls.CertificateVerificationError
		alert   tls.AlertError
	)
	return errors.As(err, &header) || errors.As(err, &unknown) || errors.As(err, &host) ||
		errors.As(err, &invalid) || errors.As(err, &verify) || errors.As(err, &alert)
}

// isTimeout takes context.Canceled in: wrap has seen that the caller's own
// context goes on, so it was the limit on one command.
func isTimeout(err error) bool {
	var n net.Error
	return errors.Is(err, errTimeout) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.As(err, &n) && n.Timeout()
}

// isLost says whether a connection that had been there is gone.
func isLost(err error) bool {
	var cut *errCut
	return errors.As(err, &cut) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNABORTED) ||
		errors.Is(err, rueidis.ErrClosing)
}

func isRefused(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return errors.As(err, &op) || errors.As(err, &dns)
}
