package doctor

import (
	"errors"
	"strings"

	"korvet-offload/s3sink"
)

// OfTrials judges what came of the throw-away objects; kms says that the bucket
// encrypts them with a key of its own.
func OfTrials(t s3sink.Trials, kms bool) []Finding {
	all := make([]Finding, 0, len(t.Done)+1)
	none := true
	for _, one := range t.Done {
		f := trial(one)
		if kms && f.Verdict == Fail && s3sink.ClassOf(one.Err) == s3sink.ClassDenied {
			f.Do += "; with this bucket's encryption also kms:GenerateDataKey and kms:Decrypt on the key"
		}
		all = append(all, f)
		none = none && one.IsUntried()
	}
	switch {
	case len(t.Left) > 0:
		return append(all, fail("store.cleanup", "remove it by hand", "left below the prefix: %s", strings.Join(t.Left, ", ")))
	case none:
		return append(all, skip("store.cleanup", "", "nothing was put"))
	}
	return append(all, good("store.cleanup", "nothing is left"))
}

func trial(t s3sink.Trial) Finding {
	id := "store." + string(t.Step)
	switch {
	case t.Err == nil:
		return good(id, "%s", went(t.Step))
	case t.IsUntried(), isOther(t):
		return skip(id, "", "not tried: %s", t.Err)
	case t.Step == s3sink.StepUnnamed:
		return good(id, "none here: files have a temporary name first")
	}
	return failed(id, t)
}

// isOther says whether a step failed before it came to what it is for: other
// steps say that.
func isOther(t s3sink.Trial) bool {
	switch t.Step {
	case s3sink.StepChecksum:
		return !errors.Is(t.Err, s3sink.ErrUnchecked)
	case s3sink.StepAbort:
		e, ok := errors.AsType[*s3sink.Error](t.Err)
		return ok && e.Op != "abort"
	}
	return false
}

// failed judges a step that did not go as it must.
func failed(id string, t s3sink.Trial) Finding {
	switch weak := errors.Is(t.Err, s3sink.ErrReplaced) || errors.Is(t.Err, s3sink.ErrUnsupported); {
	case weak && t.Step == s3sink.StepCreateOnly:
		return warn(id, "nothing, or use a store with conditional puts: each attempt gets a path of its own instead", "%s", t.Err)
	case weak && t.Step == s3sink.StepPartsOnly:
		return warn(id, "nothing while segments stay below 5 GiB: they go by single puts instead", "%s", t.Err)
	case errors.Is(t.Err, s3sink.ErrUnchecked):
		return warn(id, "nothing: objects are verified after each upload", "%s", t.Err)
	case t.Step == s3sink.StepAbort, t.Step == s3sink.StepList && s3sink.ClassOf(t.Err) == s3sink.ClassDenied:
		f := failStore(id, t.Err)
		f.Verdict = Warn
		return f
	case errors.Is(t.Err, s3sink.ErrDiffers), errors.Is(t.Err, s3sink.ErrStillThere), errors.Is(t.Err, s3sink.ErrNotListed):
		return fail(id, "leave out caches and replicas between this program and the store", "%s", t.Err)
	case t.Step == s3sink.StepLink, t.Step == s3sink.StepSyncFolder:
		return fail(id, "use another file system for korvet.storage.remote-path", "%s", t.Err)
	}
	return failStore(id, t.Err)
}

// went is what a step has shown.
func went(s s3sink.Step) string {
	switch s {
	case s3sink.StepPut:
		return "a small object was put"
	case s3sink.StepHead:
		return "objects can be looked at"
	case s3sink.StepGet:
		return "objects can be read"
	case s3sink.StepList:
		return "objects can be listed"
	case s3sink.StepCreateOnly:
		return "a key that is taken is refused"
	case s3sink.StepChecksum:
		return "a wrong checksum is refused"
	case s3sink.StepParts:
		return "an upload in parts went through"
	case s3sink.StepPartsOnly:
		return "a key that is taken is refused in parts, too"
	case s3sink.StepAbort:
		return "unfinished uploads can be given up"
	case s3sink.StepLink:
		return "hard links work, and a name that is taken is refused"
	case s3sink.StepUnnamed:
		return "files can do without a name until they are whole"
	case s3sink.StepSyncFolder:
		return "folders can be made durable"
	case s3sink.StepDelete:
		return "what was put was removed, and is gone"
	}
	return "it went well"
}
