package conformance

import (
	"fmt"
	"io"
	"strings"
)

// Report is what became of every case that was found, in the order of files and cases.
type Report struct {
	Cases []Case
}

// Case is one case of one fixture.
type Case struct {
	Suite string // the name of the directory
	File  string // the name of the file
	Name  string
	// Failures say what was expected and what was seen; none if the case passed.
	Failures []string
}

// Passed reports whether everything the case asked for was seen.
func (c Case) Passed() bool { return len(c.Failures) == 0 }

func (c Case) String() string { return c.Suite + "/" + c.File + " " + c.Name }

// Passed and Failed count the cases.
func (r Report) Passed() int { return len(r.Cases) - r.Failed() }

func (r Report) Failed() int {
	n := 0
	for _, c := range r.Cases {
		if !c.Passed() {
			n++
		}
	}
	return n
}

// Write prints a line for each case that failed (with verbose, for every case) and the closing line
// "N passed, N failed".
func (r Report) Write(w io.Writer, verbose bool) error {
	var b strings.Builder
	for _, c := range r.Cases {
		switch {
		case !c.Passed():
			fmt.Fprintf(&b, "FAIL %s: %s\n", c, strings.ReplaceAll(strings.Join(c.Failures, "; "), "\n", ", "))
		case verbose:
			fmt.Fprintf(&b, "ok   %s\n", c)
		}
	}
	fmt.Fprintf(&b, "%d passed, %d failed\n", r.Passed(), r.Failed())
	_, err := io.WriteString(w, b.String())
	return err
}
