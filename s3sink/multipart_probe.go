package s3sink

import (
	"context"
	"errors"
	"fmt"
)

// probe remembers whether the store obeys the condition of a multipart upload.
type probe struct {
	turn  turn
	done  bool
	obeys bool
}

// errPartsReplace says that an object has no way to get there and harm nothing.
var errPartsReplace = errors.New("the store ends multipart uploads without a look at what is there, which could replace another object")

// wayOf chooses how an object is uploaded. Stores have been seen that obey the
// condition of a single put and not that of a multipart upload. There, one that
// was begun long ago could at last replace the object that another process has
// put at the key since; so the store is asked before the first, and if it does
// not obey, objects go by single puts, whatever their size.
func (b *bucket) wayOf(ctx context.Context, u Upload) (func(context.Context, request, Upload) (string, error), error) {
	if u.Size <= b.cfg.MultipartThreshold {
		return b.putWhole, nil
	}
	if u.Unconditional || b.opt.Owner.Namespace == "" {
		return b.putParts, nil // the caller has a key of its own, or has not asked
	}
	obeys, err := b.partsObey(ctx)
	switch {
	case err != nil:
		return nil, err
	case obeys:
		return b.putParts, nil
	case u.Size <= MaxPartSize:
		return b.putWhole, nil
	}
	return nil, b.fault(request{op: "put", key: u.Key}, ClassUnsupported,
		fmt.Sprintf("a single put takes %d bytes: make segments smaller (segment.bytes)", int64(MaxPartSize)), errPartsReplace)
}

// partsObey asks the store once, the way ClaimOwner does: the bytes of the
// owner marker are put again, now in a part, and nothing changes where the
// condition is not obeyed.
func (b *bucket) partsObey(ctx context.Context) (bool, error) {
	p := &b.probe
	if err := p.turn.take(ctx); err != nil {
		return false, b.classify(ctx, request{op: "claim", key: MarkerKey}, err, new(exchange))
	}
	defer p.turn.give()
	if p.done {
		return p.obeys, nil
	}
	content, err := haveMarker(ctx, b, b.opt.Owner, b.opt.Now())
	if err != nil {
		return false, at("s3://"+b.name, b.path(MarkerKey), err)
	}
	u := markerUpload(content)
	_, err = b.putParts(ctx, request{op: "claim", key: u.Key, size: u.Size}, u)
	switch ClassOf(err) {
	case ClassExists:
		p.obeys = true
	case "", ClassUnsupported, ClassInvalid: // it does what it likes, or takes no such uploads
	default:
		return false, err
	}
	p.done = true
	return p.obeys, nil
}
