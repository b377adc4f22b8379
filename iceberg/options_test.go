package main

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"korvet-offload/internal/cmdline"
	"korvet-offload/s3sink"
)

// What is wrong with the command line is one line, and exit code 2. Secrets are not
// taken from it, and never printed.
func TestWrongUsage(t *testing.T) {
	r := &rig{t: t, environ: []string{"KORVET_STORAGE_REMOTE_PATH=file:///tmp/x", tokenVariable + "=s3cret"}}
	for _, tt := range []struct{ args, want string }{
		{"regsiter", `there is no command "regsiter"; there is register`},
		{"register", "register: name one topic"},
		{"register a b --catalog sqlite:///c", "register: name one topic"},
		{"register --s3-path-style orders --catalog mysql://h/d", `"mysql" is none that is known`}, // the option takes no value
		{"register or/ders --catalog sqlite:///c", "or/ders"},
		{"register orders", "--catalog: want https://"},
		{"register orders --catalog mysql://h/d", `--catalog: "mysql" is none that is known`},
		{"register orders --catalog sqlite://c", "sqlite:///file, with three slashes"},
		{"register orders --catalog https:///x", "--catalog: it names no host"},
		{"register orders --catalog postgres://u:s3cret@h/d --warehouse s3://b/w", "--catalog: it holds a password; for postgres use PGPASSWORD"},
		{"register orders --catalog postgres://h/d?password=s3cret --warehouse s3://b/w", "--catalog: it holds a password"},
		{"register orders --catalog https://u:s3cret@h/d", "--catalog: it holds a password"},
		{"register orders --catalog https://h --property token=s3cret", "--property token: a secret on the command line"},
		{"register orders --catalog https://h --property s3.secret-access-key=s3cret", "--property s3.secret-access-key: a secret"},
		{"register orders --catalog https://h --property s3", "--property: want NAME=VALUE"},
		{"register orders --catalog sqlite:///c", "--warehouse: an SQL catalog needs"},
		{"register --catalog sqlite:///c --warehouse s3://b/w --table orders orders", `--table "orders": want NAMESPACE.NAME`},
		{"register --catalog sqlite:///c --warehouse s3://b/w --table a.b/c orders", `--table "a.b/c": want NAMESPACE.NAME`},
		{"register orders --catalog sqlite:///c --warehouse s3://b/w --output xml", "--output xml: want table or json"},
		{"register orders --frequently", "flag provided but not defined: -frequently; see korvet-offload-iceberg register --help"},
		{"register orders --catalog sqlite:///c --warehouse file:///w --set korvet.storage.offload.tick-interval=soon", "tick-interval"},
	} {
		a := r.call(strings.Fields(tt.args)...)
		if a.code != cmdline.Usage || a.stdout != "" || strings.Count(a.stderr, "\n") != 1 || !strings.Contains(a.stderr, tt.want) || strings.Contains(a.stderr, "s3cret") {
			t.Errorf("%s: exit %d, stdout %q\n%swant %s", tt.args, a.code, a.stdout, a.stderr, tt.want)
		}
	}
	for _, args := range []string{"", "--help", "register --help", "--version"} {
		if a := r.call(strings.Fields(args)...); a.code != cmdline.Done || a.stderr != "" || !strings.Contains(a.stdout, "korvet-offload") {
			t.Errorf("%q: %+v", args, a)
		}
	}
}

func TestTableNames(t *testing.T) {
	for _, tt := range []struct{ text, topic, want string }{
		{"", "orders", "korvet.orders"},
		{"", "Shop.orders-eu_1", "korvet.shop_orders_eu_1"},
		{"lake.raw.orders", "x", "lake.raw.orders"},
	} {
		got, err := tableName(tt.text, tt.topic)
		if err != nil || dotted(got) != tt.want {
			t.Errorf("%q, topic %s: %q, %v; want %s", tt.text, tt.topic, got, err, tt.want)
		}
	}
}

// Redis or a catalog that is not there is one line, and says nothing secret.
func TestNobodyAnswers(t *testing.T) {
	r := newRig(t)
	r.pass()
	for _, tt := range []struct{ catalog, want string }{
		{"postgres://user@127.0.0.1:1/db", "open catalog postgres://user@127.0.0.1:1/db: "},
		{"http://127.0.0.1:1/x", "open catalog http://127.0.0.1:1/x: "},
		{"sqlite:///no/such/folder/c.db", "open catalog sqlite:///no/such/folder/c.db: "},
	} {
		r.catalog = tt.catalog
		r.environ = append(r.environ, tokenVariable+"=s3cret")
		a := r.register("orders")
		if a.code != cmdline.Fault || !strings.Contains(a.stderr, tt.want) || strings.Contains(a.stderr, "s3cret") || strings.Count(a.stderr, "\n") != 1 {
			t.Errorf("%+v", a)
		}
	}
	r.server.Stop()
	if a := r.register("orders"); a.code != cmdline.Fault || !strings.Contains(a.stderr, "redis") {
		t.Errorf("%+v", a)
	}
}

// A database that takes the connection and says nothing does not keep the program from
// being stopped.
func TestADatabaseThatSaysNothing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		if c, err := l.Accept(); err == nil {
			stop()
			<-t.Context().Done()
			_ = c.Close()
		}
	}()
	o := options{name: "korvet", warehouse: "file:///tmp/x"}
	if o.catalog, err = catalogURI("postgres://user@" + l.Addr().String() + "/db"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := openCatalog(ctx, o, s3sink.Config{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
