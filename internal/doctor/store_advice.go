package doctor

import (
	"errors"
	"strings"

	"korvet-offload/s3sink"
)

// failStore is a finding of an error. What its text says is to be done stands
// there only where findings say that.
func failStore(id string, err error) Finding {
	seen, do := err.Error(), storeAdvice(err)
	if e, ok := errors.AsType[*s3sink.Error](err); ok && e.Hint != "" {
		seen, do = strings.TrimSuffix(seen, "; "+e.Hint), e.Hint
		if e.Class == s3sink.ClassDenied {
			do += "; docs/iam/s3-policy.json has all that is needed"
		}
	}
	return fail(id, do, "%s", seen)
}

// storeAdvice is what to do about an error that does not say it itself.
func storeAdvice(err error) string {
	switch s3sink.ClassOf(err) {
	case s3sink.ClassNoBucket:
		return "create it, or mend korvet.storage.remote-path"
	case s3sink.ClassCredentials:
		return "check the keys in korvet.storage.s3, or those of the AWS default chain"
	case s3sink.ClassWrongRegion:
		return "set korvet.storage.s3.region"
	case s3sink.ClassClockSkew:
		return "run NTP on this host"
	case s3sink.ClassDenied:
		return "grant it; docs/iam/s3-policy.json has all that is needed"
	case s3sink.ClassFull:
		return "make room, or raise the quota"
	case s3sink.ClassLocked:
		return "see store.lock"
	case s3sink.ClassInvalid, s3sink.ClassUnsupported:
		return "check korvet.storage.remote-path and korvet.storage.s3"
	}
	return "see that the store is up, and that this host may reach it"
}
