package store

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestKeysSortAsTheirPartsDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 0xff, 'a', 'b'}), 0, 3), func(b []byte) string { return string(b) })
		a := rapid.SliceOfN(part, 1, 3).Draw(t, "a")
		b := rapid.SliceOfN(part, 1, 3).Draw(t, "b")
		if got, want := bytes.Compare(kindSession.key(a...), kindSession.key(b...)), slices.Compare(a, b); got != want {
			t.Fatalf("%q and %q compare as %d, want %d", a, b, got, want)
		}
	})
}

func TestPartsTakesApartWhatKeyPutTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.SliceOfN(rapid.String(), 1, 4).Draw(t, "parts")
		if got := parts(kindSession.key(in...)[1:]); !slices.Equal(got, in) {
			t.Fatalf("got %q, want %q", got, in)
		}
	})
}

func TestNoKeyIsUnderThePrefixOfAnother(t *testing.T) {
	for _, tc := range []struct{ prefix, other []byte }{
		{kindSessionLog.key("a"), kindSessionLog.key("ab", "f")},
		{kindSessionLog.key("a"), kindSessionLog.key("a\x00", "f")},
		{kindSessionLog.key("a"), kindSessionLog.key("a\x00\x01", "f")},
		{kindSessionLog.key(""), kindSessionLog.key("\x00", "f")},
		{kindSessionLog.key("a", "f"), kindSessionLog.key("a", "ff")},
	} {
		if bytes.HasPrefix(tc.other, tc.prefix) {
			t.Errorf("%q is under %q", tc.other, tc.prefix)
		}
	}
}

func TestPrefixEndIsTheFirstKeyAfterAllWithThePrefix(t *testing.T) {
	for _, tc := range []struct{ prefix, want string }{{"a", "b"}, {"a\xff", "b"}, {"a\x00", "a\x01"}, {"\xff\xff", ""}, {"", ""}} {
		if got := prefixEnd([]byte(tc.prefix)); string(got) != tc.want || (got == nil) != (tc.want == "") {
			t.Errorf("after %q comes %q, want %q", tc.prefix, got, tc.want)
		}
	}
}

func FuzzDamagedKeysAreReadWithoutHarm(f *testing.F) {
	f.Add([]byte("a\x00\x01"))
	f.Add([]byte{0})
	f.Add([]byte{0, 0xff, 0, 1, 7})
	f.Fuzz(func(t *testing.T, key []byte) {
		n := 0
		for _, p := range parts(key) {
			n += len(p)
		}
		if n > len(key) {
			t.Errorf("%q gave %d bytes", key, n)
		}
	})
}
