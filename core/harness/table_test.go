package harness

import "testing"

// The table is the one place that sorts errors: no category may be in it that the test beside this one does not know.
func TestTheTableHasNoCategoryTwiceAndNoneUnknown(t *testing.T) {
	const want = 34
	if got := len(buckets); got != want {
		t.Errorf("the table has %d categories, the test of buckets names %d", got, want)
	}
}
