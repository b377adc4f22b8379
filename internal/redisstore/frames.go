package redisstore

import "fmt"

// frames follows the protocol in a stream of bytes, without keeping them. It
// counts whole messages, and refuses what no server has to say: unknown marks,
// numbers that are none, and messages that are, or claim to be, too large or
// nested too deep.
type frames struct {
	limit int64 // bytes of one message; elements count as elementBytes each from when they are announced
	text  int64 // bytes of one text, which the client sets aside when it is announced

	whole int64 // messages so far

	open  []int64 // elements yet to come, of each level
	owed  int64   // and of all levels
	size  int64   // of the message so far
	skip  int64   // bytes of a text yet to come
	mark  byte    // of the line that has begun; 0 = none has
	line  int     // bytes of it so far
	last  byte    // the byte before
	value int64   // the number in it
	minus bool
}

const (
	maxDepth     = 16
	elementBytes = 64                      // at least what the client sets aside for an announced element
	maxElements  = maxClaim / elementBytes // that are announced and have not come
	maxClaim     = 256 << 20               // bytes that the client may set aside for what has not come
)

// feed takes the next bytes.
func (f *frames) feed(b []byte) error {
	for i := 0; i < len(b); {
		if f.skip > 0 {
			n := min(f.skip, int64(len(b)-i))
			f.skip -= n
			if i += int(n); f.skip == 0 {
				f.element()
			}
			continue
		}
		if err := f.next(b[i]); err != nil {
			return err
		}
		i++
	}
	return nil
}

// next takes a byte of a line.
func (f *frames) next(c byte) error {
	switch {
	case f.mark == 0:
		return f.begin(c)
	case c == '\n' && f.last == '\r':
		return f.endLine()
	case c == '\n' || f.last == '\r' && counts(f.mark):
		return fmt.Errorf("%w: a line that ends in itself", errProtocol)
	}
	f.last = c
	if f.line++; f.line > maxErrLine {
		return fmt.Errorf("%w: a line of more than %d bytes", errProtocol, maxErrLine)
	}
	if counts(f.mark) {
		return f.digit(c)
	}
	return nil
}

// begin takes the first byte of a line.
func (f *frames) begin(c byte) error {
	if !known(c) {
		return fmt.Errorf("%w: a message that begins with byte %d", errProtocol, c)
	}
	f.mark, f.last, f.line, f.value, f.minus = c, 0, 0, 0, false
	if len(f.open) == 0 {
		f.size = 0
	}
	return nil
}

func (f *frames) digit(c byte) error {
	switch {
	case c >= '0' && c <= '9' && f.line <= maxDigits+1:
		f.value = f.value*10 + int64(c-'0')
	case c == '-' && f.line == 1:
		f.minus = true
	case c != '\r':
		return fmt.Errorf("%w: a length that is none, or too large", errProtocol)
	}
	return nil
}

func (f *frames) endLine() error {
	mark, n := f.mark, f.value
	f.mark = 0
	f.size += int64(f.line)
	var err error
	switch {
	case f.minus && (n != 1 || mark == '%'), mark == '_' && f.line != 1, mark == '#' && f.line != 2:
		err = fmt.Errorf("%w: a value that is none", errProtocol)
	case !counts(mark), f.minus:
		f.element()
	case holdsText(mark):
		err = f.beginText(n)
	case mark == '%':
		err = f.beginList(2 * n)
	default:
		err = f.beginList(n)
	}
	if err == nil && f.size > f.limit {
		err = tooLarge("a reply of more than", f.limit, "bytes")
	}
	return err
}

func (f *frames) beginText(n int64) error {
	if n > f.text {
		return tooLarge("a text of", n, "bytes")
	}
	f.skip = n + 2
	f.size += f.skip
	return nil
}

func (f *frames) beginList(n int64) error {
	f.size += n * elementBytes
	f.owed += n
	f.open = append(f.open, n)
	switch {
	case len(f.open) > maxDepth:
		return fmt.Errorf("%w: nested too deep", errProtocol)
	case f.owed > maxElements:
		return tooLarge("a list of", n, "elements")
	}
	f.settle()
	return nil
}

func tooLarge(what string, n int64, of string) error {
	return advised{fmt.Errorf("%w: %s %d %s, which nothing that is asked for may have: see what is so large there", errProtocol, what, n, of)}
}

// element notes that one is whole.
func (f *frames) element() {
	f.came(len(f.open))
	f.settle()
}

// came takes one off what is yet to come at a depth; at 0 there is nothing.
func (f *frames) came(depth int) {
	if depth > 0 {
		f.open[depth-1]--
		f.owed--
	}
}

// settle ends the levels that are complete, and with the last the message.
func (f *frames) settle() {
	for n := len(f.open); n > 0; n-- {
		if f.open[n-1] > 0 {
			return
		}
		f.open = f.open[:n-1]
		f.came(n - 1)
	}
	f.whole++
}

// known says whether a message may begin with a mark. Attributes, and texts
// and lists without a length, are of the protocol and sent by no server. Pushes
// are sent to those who have subscribed to something, or track keys: nobody
// here does, and the client ends the program at one that it does not expect.
func known(mark byte) bool {
	switch mark {
	case '+', '-', ':', ',', '#', '_', '(':
		return true
	}
	return counts(mark)
}

// counts says whether a number of bytes or elements follows a mark.
func counts(mark byte) bool {
	switch mark {
	case '*', '%', '~':
		return true
	}
	return holdsText(mark)
}

func holdsText(mark byte) bool { return mark == '$' || mark == '=' || mark == '!' }
