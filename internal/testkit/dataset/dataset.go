// Package dataset makes the messages that tests and benchmarks share: records
// of a topic in the broker's four-field envelope, the same for the same seed
// on any machine.
//
// A message is {key, value, headers, timestamp}, in this order:
//
//	key        customer-<6 digits>, one of 50,000
//	value      text of exactly the asked length, half of it drawn from few
//	           words, as JSON of business events is, half of it hex digits and
//	           decimal numbers that no compressor foresees
//	headers    {"trace":"<16 hex digits>","source":"<one of 4>"}
//	timestamp  the entry's milliseconds, in decimal
//
// One to four messages share a millisecond. Names and values of a message with
// a 100-byte value are 197 bytes, of which a segment file makes 81; with 1 KiB,
// 1,121 bytes of which it makes 493.
package dataset

import (
	"encoding/hex"
	"math/rand/v2"
	"strconv"

	"korvet-offload/segment"
)

// FirstMs is the time of a data set's first message, epoch ms.
const FirstMs = 1_708_956_789_000

// Message is one record; its slices are valid until the generator's next call.
type Message struct {
	ID                             segment.ID
	Key, Value, Headers, Timestamp []byte
}

// Fields lists names and values in turn, in stream order.
func (m Message) Fields() [8][]byte {
	return [8][]byte{
		[]byte("key"), m.Key, []byte("value"), m.Value,
		[]byte("headers"), m.Headers, []byte("timestamp"), m.Timestamp,
	}
}

// AppendTo adds the message to a page.
func (m Message) AppendTo(p *segment.Page) error {
	p.Entry(m.ID)
	f := m.Fields()
	for i := 0; i < len(f); i += 2 {
		if err := p.Field(f[i], f[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// Generator makes one data set, message by message. It is not safe for
// concurrent use.
type Generator struct {
	rnd  *rand.Rand
	size int
	id   segment.ID
	msg  Message
}

// New begins a data set whose values have valueBytes bytes (1 or more). Equal
// arguments give equal messages.
func New(seed uint64, valueBytes int) *Generator {
	return &Generator{rnd: rand.New(rand.NewPCG(seed, 0x6b6f72766574)), size: valueBytes, id: segment.ID{Ms: FirstMs}}
}

// Next makes the next message, in the memory of the one before.
func (g *Generator) Next() Message {
	m := &g.msg
	m.ID = g.nextID()
	m.Key = g.digits(append(m.Key[:0], "customer-"...), 6, 50_000)
	m.Value = g.text(m.Value[:0])
	m.Headers = append(g.hex(append(m.Headers[:0], `{"trace":"`...), 8), `","source":"`...)
	m.Headers = append(append(m.Headers, sources[g.rnd.IntN(len(sources))]...), `"}`...)
	m.Timestamp = strconv.AppendUint(m.Timestamp[:0], m.ID.Ms, 10)
	return *m
}

// Fill adds the next n messages to a page.
func (g *Generator) Fill(p *segment.Page, n int) error {
	for range n {
		if err := g.Next().AppendTo(p); err != nil {
			return err
		}
	}
	return nil
}

func (g *Generator) nextID() segment.ID {
	id := g.id
	if g.rnd.IntN(2) == 0 && g.id.Seq < 3 {
		g.id.Seq++
	} else {
		g.id = segment.ID{Ms: g.id.Ms + 1}
	}
	return id
}

// text is a JSON-like record cut to the asked length.
func (g *Generator) text(b []byte) []byte {
	b = append(g.hex(append(b, `{"order":"`...), 6), `","total":`...)
	b = append(g.digits(b, 5, 100_000), `,"note":"`...)
	for len(b) < g.size {
		b = append(append(b, words[g.rnd.IntN(len(words))]...), ' ')
		if g.rnd.IntN(4) == 0 {
			b = append(g.hex(b, 4), ' ')
		}
	}
	return b[:g.size]
}

func (g *Generator) hex(b []byte, bytes int) []byte {
	var raw [8]byte
	n := g.rnd.Uint64()
	for i := range bytes {
		raw[i] = byte(n >> (8 * i))
	}
	return hex.AppendEncode(b, raw[:bytes])
}

// digits appends a number below n, with leading zeros up to width.
func (g *Generator) digits(b []byte, width, n int) []byte {
	var raw [20]byte
	s := strconv.AppendInt(raw[:0], int64(g.rnd.IntN(n)), 10)
	for range width - len(s) {
		b = append(b, '0')
	}
	return append(b, s...)
}

var sources = [...]string{"web", "mobile", "partner", "batch"}

var words = [...]string{
	"accepted", "address", "amount", "approved", "arrived", "balance", "basket", "billing",
	"cancelled", "card", "carrier", "changed", "charge", "checkout", "city", "claim",
	"closed", "confirmed", "country", "coupon", "created", "credit", "currency", "customer",
	"declined", "delayed", "delivered", "delivery", "deposit", "discount", "dispatched", "draft",
	"email", "expired", "failed", "gift", "held", "invoice", "item", "label",
	"limit", "locked", "manual", "merchant", "method", "number", "offer", "opened",
	"order", "owner", "packed", "paid", "partial", "payment", "pending", "pickup",
	"price", "product", "quantity", "received", "refund", "rejected", "returned", "shipped",
}
