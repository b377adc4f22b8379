package serve

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// maxAddresses is how many clients have an account of their own; what comes
// from others shares one.
const maxAddresses = 4096

// rates bounds the requests of each address: so many per second, as many at once.
type rates struct {
	perSecond float64
	now       func() time.Time

	mu      sync.Mutex
	clients map[netip.Addr]*bucket
	others  bucket
	swept   time.Time
}

// bucket has what a client may still ask, and when that was so.
type bucket struct {
	left float64
	at   time.Time
}

func newRates(perSecond int, now func() time.Time) *rates {
	return &rates{perSecond: float64(perSecond), now: now, clients: map[netip.Addr]*bucket{}}
}

// take says whether an address may ask now.
func (r *rates) take(remote string) bool {
	if r.perSecond == 0 {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	b := r.bucket(addressOf(remote), now)
	b.left = min(r.perSecond, b.left+now.Sub(b.at).Seconds()*r.perSecond)
	if b.at.IsZero() {
		b.left = r.perSecond
	}
	b.at = now
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}

func (r *rates) bucket(a netip.Addr, now time.Time) *bucket {
	if b := r.clients[a]; b != nil {
		return b
	}
	if len(r.clients) >= maxAddresses && now.Sub(r.swept) >= time.Second {
		r.sweep(now)
	}
	if len(r.clients) >= maxAddresses {
		return &r.others
	}
	b := new(bucket)
	r.clients[a] = b
	return b
}

// sweep forgets those whose account is full again.
func (r *rates) sweep(now time.Time) {
	r.swept = now
	for a, b := range r.clients {
		if now.Sub(b.at) >= time.Second {
			delete(r.clients, a)
		}
	}
}

// addressOf is the address of a client; of IPv6 the network, in which a client can
// have any number of them.
func addressOf(remote string) netip.Addr {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}
	}
	if a = a.Unmap().WithZone(""); a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return a
}
