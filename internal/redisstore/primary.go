package redisstore

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// opConnect is what errors of connections that were not made go by.
const opConnect = "CONNECT"

// primary makes the connections of a Store, the general client's as well as
// those of the page readers. Without a cluster it makes none to anything but a
// primary, which it finds through the sentinels where there are any, and ends
// those whose server turns out not to be one any more. In a cluster every node
// says itself what it does not serve. Its methods may be called from any
// goroutine.
type primary struct {
	option    rueidis.ClientOption // its addresses: of the server, or of a cluster's node
	sentinels *sentinels           // nil = the address is in the settings
	cluster   bool

	mu    sync.Mutex
	wires map[*wire]*conn // those that are open
}

func newPrimary(o rueidis.ClientOption, s *sentinels, cluster bool) *primary {
	return &primary{option: o, sentinels: s, cluster: cluster, wires: map[*wire]*conn{}}
}

// clientOption are the general client's options. It is handed connections that
// have been looked at.
func (p *primary) clientOption() rueidis.ClientOption {
	o := p.option
	o.DialCtxFn = func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
		if p.sentinels != nil {
			addr = ""
		}
		c, err := p.connect(ctx, addr)
		if err != nil {
			return nil, err
		}
		c.SetDeadline(time.Time{}) //nolint:errcheck // a closed connection shows at the next use
		return c.Conn, nil
	}
	return o
}

// connect makes a connection: to the primary where addr is "".
func (p *primary) connect(ctx context.Context, addr string) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, p.option.Dialer.Timeout)
	defer cancel()
	var err error
	switch {
	case addr != "":
	case p.sentinels == nil:
		addr = p.option.InitAddress[0]
	default:
		if addr, _, err = p.sentinels.find(ctx); err != nil {
			return nil, err
		}
	}
	c, err := newConn(ctx, &p.option, addr, p.setUp)
	if err != nil {
		return nil, err
	}
	p.keep(c)
	p.leave(c.origin)
	return c, nil
}

// setUp is the handshake, and refuses what is no primary. A user who may not
// ask for INFO still gets that, and not what confirm is for.
func (p *primary) setUp(c *conn, o *rueidis.ClientOption) error {
	if err := c.handshake(o); err != nil || p.cluster {
		return err
	}
	info, err := c.replication()
	if err != nil && classify(err) != Permission {
		return err
	}
	c.origin = originOf(info)
	return p.fits(c, info)
}

// replication is what the server says of its part in replication. The rest of
// INFO may be of any length, since servers count errors by their words.
func (c *conn) replication() (map[string]string, error) {
	reply, err := c.question("INFO", "replication")
	if noSections(err) {
		reply, err = c.question("INFO")
	}
	if err != nil {
		return nil, err
	}
	return infoLines(string(reply)), nil
}

// noSections says whether a server answers INFO with an error that may mean that
// it gives no such part of it.
func noSections(err error) bool {
	_, answered := replyText(err)
	return answered && classify(err) == Other
}

// originOf names the history that a server has the data of: whenever a server
// starts or becomes a primary it begins a new one. "" where the server does not
// say. A primary also begins one when its first replica comes, or has been gone
// for long. Nothing in the same part of INFO tells that from another server: the
// connections are made anew, once, and a stream that was being read is read again.
func originOf(info map[string]string) string { return info["master_replid"] }

// fits says whether a server is one that the settings can mean.
func (p *primary) fits(c *conn, info map[string]string) error {
	wrong := func(class Class, text string) error {
		return &Error{Op: opConnect, Key: c.addr, Class: class, Err: advised{errors.New(text)}}
	}
	replica := "it is a replica"
	if info["master_host"] != "" {
		replica += " of " + info["master_host"] + ":" + info["master_port"]
	}
	switch {
	case c.mode == "sentinel":
		return wrong(WrongMode, "it is a sentinel: write korvet.redis.uri as redis+sentinel://"+c.addr+"/master-name")
	case c.mode == "cluster":
		return wrong(WrongMode, "it is a node of a Redis Cluster: set korvet.redis.cluster to true")
	case !isReplica(c.role):
		return nil
	case p.sentinels != nil:
		return wrong(Unavailable, replica+", and the sentinels name it as the primary: they will name the right one when the failover is over")
	}
	return wrong(Unavailable, replica+": give the address of the primary, or those of the sentinels as redis+sentinel://")
}

// isReplica takes the word of HELLO and that of INFO.
func isReplica(role string) bool { return role == "replica" || role == "slave" }

// errChanged means that pages would come from two servers, or from one that
// was not the primary all the time.
var errChanged = errors.New("the primary has changed while the stream was read, so what was read does not count; it is read again from its beginning")

// confirm makes sure that the server of a connection still is the primary that
// it was when the connection was made, without a break.
func (p *primary) confirm(c *conn) error {
	if c.origin == "" {
		return nil
	}
	info, err := c.replication()
	if err != nil {
		return err
	}
	return sameOrigin(info, c.origin)
}

func sameOrigin(info map[string]string, origin string) error {
	if isReplica(info["role"]) || originOf(info) != origin {
		return errChanged
	}
	return nil
}

// keep notes a connection, until it is closed.
func (p *primary) keep(c *conn) {
	w := c.Conn.(*wire) //nolint:forcetypeassert // newConn makes no others
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wires[w] = c
	w.onEnd = func(w *wire) {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.wires, w)
	}
}

// demoted ends every connection that was made before a time: the server has
// said then that it is no primary. Whatever waits for an answer gets an error,
// and the next connection is made to what is the primary by then.
func (p *primary) demoted(before time.Time) {
	p.end(func(c *conn) bool { return c.born.Before(before) })
}

// leave ends the connections to what was the primary before the one of this
// origin: it may be gone without a word, or be a primary still by its own. The
// second id of a replica that was promoted is the origin of just that server, and
// no reason to keep anything.
func (p *primary) leave(origin string) {
	p.end(func(c *conn) bool { return origin != "" && c.origin != origin })
}

// pollInterval is how often the sentinels are asked unasked. A primary that is
// handed over goes on taking writes, which are lost, for ten seconds or more.
const pollInterval = 2 * time.Second

// follow heeds the sentinels again and again until ctx ends.
func (p *primary) follow(ctx context.Context) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		p.heed(ctx)
	}
}

// heed asks the sentinels and ends the connections to what they do not name any
// more. Without a majority all stays: a sentinel that was cut off names the
// primary of before, and two may call one server by two names.
func (p *primary) heed(ctx context.Context) {
	if now, most, err := p.sentinels.find(ctx); err == nil && most {
		p.end(func(c *conn) bool { return c.addr != now })
	}
}

// start begins to follow, where there are sentinels. The function that it
// returns ends that, and waits.
func (p *primary) start() (stop func()) {
	if p.sentinels == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.follow(ctx)
	}()
	return func() {
		cancel()
		<-done
		p.close()
	}
}

// close ends the connections to the sentinels.
func (p *primary) close() {
	if p.sentinels != nil {
		p.sentinels.close()
	}
}

func (p *primary) end(which func(*conn) bool) {
	p.mu.Lock()
	var old []*wire
	for w, c := range p.wires {
		if which(c) {
			old = append(old, w)
		}
	}
	p.mu.Unlock()
	for _, w := range old {
		w.Close()
	}
}

// look ends the connections where an error says that the server refuses writes
// because it is a replica. A script's error has words of its own around it.
func (p *primary) look(sent time.Time, err error) {
	if reply, ok := replyText(err); ok && !p.cluster && strings.Contains(reply, "READONLY ") {
		p.demoted(sent)
	}
}

// watched is a client whose connections end when a write finds that its server
// is no primary any more.
type watched struct {
	rueidis.Client
	primary *primary
}

func (w watched) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	sent := time.Now()
	r := w.Client.Do(ctx, cmd)
	w.primary.look(sent, r.Error())
	return r
}

func (w watched) DoMulti(ctx context.Context, cmds ...rueidis.Completed) []rueidis.RedisResult {
	sent := time.Now()
	all := w.Client.DoMulti(ctx, cmds...)
	for _, r := range all {
		w.primary.look(sent, r.Error())
	}
	return all
}
