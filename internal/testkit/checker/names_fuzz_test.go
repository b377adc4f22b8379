package checker

import (
	"testing"

	"korvet-offload/segment"
)

// What both say of ids, numbers, folders and paths.
//
//fault:input | Ids, segment numbers, folders and object paths of any text | fuzzing of the program's own reading against the checker's | both agree, and no path is deleted for a segment to which the checker knows it does not belong
func FuzzNames(f *testing.F) {
	f.Add("5-5", "korvet:storage:local:t:0", "7", int64(0), "/7.parquet")
	f.Add("18446744073709551615-0", "a/b", "07", int64(2), "/07-2.x.parquet")
	f.Add("5-05", "..", "9223372036854775808", int64(1), "/7-01.parquet")
	f.Add("-", "\xff%", "0", int64(3), "/0-3.parquet")
	f.Add("00-00", "", "+1", int64(1), "/0/../0-1.parquet")
	f.Fuzz(func(t *testing.T, idText, folder, number string, copies int64, rest string) {
		his, err := segment.ParseID(idText)
		mine, ok := parseID(idText)
		if ok != (err == nil) || ok && mine != (id{his.Ms, his.Seq}) {
			t.Fatalf("id %q: to the program %s, %v, to the checker %s, %t", idText, his, err, mine, ok)
		}
		if ok && mine.String() != his.String() {
			t.Fatalf("id %q is written %s and %s", idText, his, mine)
		}
		n, err := segment.ParseNumber(number)
		same, ok := parseNumber(number)
		if ok != (err == nil) || ok && uint64(n) != same {
			t.Fatalf("number %q: to the program %s, %v, to the checker %d, %t", number, n, err, same, ok)
		}
		plain := Partition{StreamKey: folder, Plain: true}
		if got, want := plain.folder(), segment.SafeKey(folder); got != want {
			t.Fatalf("key %q: folder %q to the program, %q to the checker", folder, want, got)
		}
		if !ok || copies < 0 {
			return
		}
		for _, path := range []string{folder + rest, segment.ObjectPath(folder, n, copies, ""), segment.ObjectPath(folder, n, copies, "x")} {
			if isObjectOf(path, folder, number, copies) && !segment.IsObjectOf(path, folder, n) {
				t.Fatalf("%q is copy %d of segment %s to the checker, and none to the program", path, copies, number)
			}
		}
		if made := segment.ObjectPath(folder, n, copies, ""); !isObjectOf(made, folder, number, copies) || isObjectOf(made, folder, number, copies^1) {
			t.Fatalf("%q is not copy %d of segment %s alone", made, copies, number)
		}
	})
}
