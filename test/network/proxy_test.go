package network

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// proxy stands before a server. Its methods are called from one goroutine.
type proxy struct {
	t    *testing.T
	link *toxiproxy.Proxy
}

// proxies counts them: each has a loopback address of its own, so that nobody
// takes its port while it is off.
var proxies atomic.Int32

// newProxy stands before the server at an address until the test ends.
func newProxy(t *testing.T, upstream string) *proxy {
	t.Helper()
	n := proxies.Add(1)
	listen := fmt.Sprintf("127.7.%d.%d:0", n/250, 1+n%250)
	log := zerolog.Nop()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), log)
	p := &proxy{t: t, link: toxiproxy.NewProxy(server, "proxy", listen, strings.TrimPrefix(upstream, "http://"))}
	if err := p.link.Start(); err != nil {
		t.Fatalf("start proxy: %v", err)
	}
	t.Cleanup(p.link.Stop)
	return p
}

// addr is where the proxy listens.
func (p *proxy) addr() string { return p.link.Listen }

// toxic is what happens to the bytes of one direction.
type toxic struct {
	kind       string
	stream     string // upstream: to the server; downstream: to the program
	attributes map[string]any
}

func up(kind string, attributes map[string]any) toxic   { return toxic{kind, "upstream", attributes} }
func down(kind string, attributes map[string]any) toxic { return toxic{kind, "downstream", attributes} }

// hole swallows what goes in one direction; the connection stays.
func hole(stream string) toxic { return toxic{"timeout", stream, map[string]any{"timeout": 0}} }

// add begins faults; what they do is lifted by lift.
func (p *proxy) add(faults ...toxic) {
	p.t.Helper()
	for _, f := range faults {
		text, err := json.Marshal(map[string]any{"type": f.kind, "stream": f.stream, "attributes": f.attributes})
		if err != nil {
			p.t.Fatal(err)
		}
		if _, err := p.link.Toxics.AddToxicJson(strings.NewReader(string(text))); err != nil {
			p.t.Fatalf("add %s: %v", text, err)
		}
	}
}

// lift ends the faults of these kinds.
func (p *proxy) lift(faults ...toxic) {
	p.t.Helper()
	for _, f := range faults {
		if err := p.link.Toxics.RemoveToxic(context.Background(), f.kind+"_"+f.stream); err != nil {
			p.t.Fatalf("lift %s: %v", f.kind, err)
		}
	}
}

// off ends all connections and refuses further ones.
func (p *proxy) off() { p.link.Stop() }

// on takes connections again. A process that is being started may hold on to
// the port for a moment.
func (p *proxy) on() {
	p.t.Helper()
	await(p.t, "the proxy has its port again", 5*time.Second, func() bool { return p.link.Start() == nil })
}

// cutAll ends all connections, and takes new ones at once.
func (p *proxy) cutAll() {
	p.off()
	p.on()
}
