package redisstore

import (
	"errors"
	"net"
	"net/url"
	"regexp"
	"strings"
)

// defaultSentinelPort is where a sentinel listens when nothing is said.
const defaultSentinelPort = "26379"

// sentinelURI is a redis+sentinel:// or rediss+sentinel:// URI taken apart.
type sentinelURI struct {
	plain     string   // what it says of the servers: redis://user:password@name/database
	sentinels []string // host:port, one or more
	master    string   // the name by which they know the primary
}

var errSentinelURI = errors.New("want redis+sentinel://[user:password@]sentinel[:port][,sentinel[:port]...]/master-name[/database], " +
	"or rediss+sentinel:// for TLS; user and password are those of the servers, with %xx for @ : / ? # and %")

// masterName is what the sentinels' own configuration takes for a name.
var masterName = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// isSentinelURI says whether a URI names sentinels, rightly or not.
func isSentinelURI(uri string) bool {
	scheme, _, _ := strings.Cut(uri, "://")
	return scheme == "redis+sentinel" || scheme == "rediss+sentinel"
}

// overTLS says whether the scheme of a URI is one with TLS.
func overTLS(uri string) bool {
	scheme, _, _ := strings.Cut(uri, "://")
	return scheme == "rediss" || scheme == "rediss+sentinel"
}

// parseSentinelURI takes a URI apart; its errors never repeat it.
func parseSentinelURI(uri string) (sentinelURI, error) {
	if !isSentinelURI(uri) {
		return sentinelURI{}, errSentinelURI
	}
	scheme, rest, _ := strings.Cut(uri, "://")
	rest, query, _ := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	user, hosts := "", authority
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		user, hosts = authority[:i+1], authority[i+1:]
	}
	master, database, _ := strings.Cut(path, "/")
	if !masterName.MatchString(master) || strings.Trim(database, "0123456789") != "" || strings.Contains(query, "addr=") {
		return sentinelURI{}, errSentinelURI
	}
	u := sentinelURI{plain: strings.TrimSuffix(scheme, "+sentinel") + "://" + user + "primary", master: master}
	if database != "" {
		u.plain += "/" + database
	}
	if query != "" {
		u.plain += "?" + query
	}
	for host := range strings.SplitSeq(hosts, ",") {
		addr, err := sentinelAddress(host)
		if err != nil {
			return sentinelURI{}, err
		}
		u.sentinels = append(u.sentinels, addr)
	}
	if checkURI(u.plain) != nil {
		return sentinelURI{}, errSentinelURI
	}
	return u, nil
}

// sentinelAddress is host:port of a sentinel, of which the port may be left out.
func sentinelAddress(text string) (string, error) {
	u, err := url.Parse("redis://" + text)
	if err != nil || u.Host != text || checkHost(u.Hostname()) != nil {
		return "", errSentinelURI
	}
	port := u.Port()
	if port == "" {
		port = defaultSentinelPort
	}
	return net.JoinHostPort(u.Hostname(), port), nil
}

// plainSentinels is such a URI, whole or not, that has no place for a password.
var plainSentinels = regexp.MustCompile(`^rediss?\+sentinel://(?:[A-Za-z0-9._-]+(?::\d{1,5})?,?)*(?:/[A-Za-z0-9._-]*)?(?:/\d*)?$`)

// redactSentinelURI is RedactURI of a URI with sentinels.
func redactSentinelURI(uri string) string {
	if plainSentinels.MatchString(uri) {
		return uri
	}
	if _, err := parseSentinelURI(uri); err != nil {
		return notShown
	}
	scheme, rest, _ := strings.Cut(uri, "://")
	at := strings.LastIndexByte(rest, '@')
	if at < 0 {
		return uri
	}
	user, _, hasPassword := strings.Cut(rest[:at], ":")
	if !hasPassword {
		return scheme + "://xxxxx" + rest[at:] // a password without its colon, perhaps
	}
	return scheme + "://" + user + ":xxxxx" + rest[at:]
}

// WithCredentials puts a user name and a password into a URI, over those that
// it has; "" leaves what is there. A URI that makes no sense comes back as it is.
func WithCredentials(uri, user, password string) string {
	plain, scheme, rest := uri, "", ""
	if isSentinelURI(uri) {
		if _, err := parseSentinelURI(uri); err != nil {
			return uri
		}
		scheme, rest, _ = strings.Cut(uri, "://")
		at := strings.LastIndexByte(rest, '@')
		plain, rest = "redis://"+rest[:at+1]+"h", rest[at+1:]
	}
	u, err := url.Parse(plain)
	if err != nil {
		return uri
	}
	if old, ok := u.User.Password(); ok && password == "" {
		password = old
	}
	if user == "" {
		user = u.User.Username()
	}
	if u.User = url.UserPassword(user, password); password == "" {
		u.User = url.User(user)
	}
	if scheme == "" {
		return u.String()
	}
	return scheme + "://" + u.User.String() + "@" + rest
}
