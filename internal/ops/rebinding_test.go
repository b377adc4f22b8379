package ops

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

// A web page that has let a name of its own point to this host must not be able
// to read what is for this host's users.
func TestNamesOfOthersAreRefusedOnTheLoopbackInterface(t *testing.T) {
	loopback, other := net.IPv4(127, 0, 0, 1), net.IPv4(10, 0, 0, 7)
	for _, tt := range []struct {
		token, host string
		local       net.IP
		want        int
	}{
		{"", "127.0.0.1:9477", loopback, 200},
		{"", "127.0.0.1", loopback, 200},
		{"", "LocalHost:9477", loopback, 200},
		{"", "[::1]:9477", net.IPv6loopback, 200},
		{"", "[::1]", net.IPv6loopback, 200},
		{"", "", loopback, 200},
		{"", "evil.example:9477", loopback, 421},
		{"", "evil.example", net.IPv6loopback, 421},
		{"", "localhost.evil.example", loopback, 421},
		{"", "127.0.0.1.evil.example:9477", loopback, 421},
		{"", "korvet-offload.korvet.svc:9477", other, 200}, // whom it serves there is the network's matter
		{secret, "evil.example", loopback, 401},
	} {
		r := httptest.NewRequest(http.MethodGet, "/api/v1/status", nil)
		r.Host = tt.host
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: tt.local, Port: 9477}))
		w := httptest.NewRecorder()
		guarded(tt.token).ServeHTTP(w, r)
		if w.Code != tt.want {
			t.Errorf("%+v: %d %s", tt, w.Code, w.Body)
		}
		probe := httptest.NewRecorder()
		r.URL.Path = "/livez"
		if guarded(tt.token).ServeHTTP(probe, r); probe.Code != http.StatusOK {
			t.Errorf("%+v: a probe gets %d", tt, probe.Code)
		}
	}
}
