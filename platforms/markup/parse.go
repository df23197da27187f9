package markup

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	tableast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

const (
	// maxSource and maxCells bound what is read as CommonMark: the parser takes quadratic time for some inputs, and a few
	// bytes of table can ask for millions of cells. What is larger is shown literally. Bytes; pipes in a line times lines.
	maxSource = 100_000
	maxCells  = 100_000
	// maxDepth is how deep quotes and lists nest; what is deeper is shown at this depth.
	maxDepth = 8
	// maxLink is the longest target of a link, in bytes, counting five for "&", which dialects write as an entity.
	maxLink = 2000
)

// Parse reads CommonMark with tables, strikethrough and bare links. It accepts everything: what is no markup is text.
//
// Compared to a browser: HTML is shown literally, except that <br> breaks the line; an image is a link that shows its
// alternative text; a link that leads elsewhere than to http, https or mailto is shown with its target as text, and so is
// a definition of a link that nothing uses. Line ends inside a paragraph are kept.
func Parse(source string) Document {
	source = clean(source)
	if oversized(source) {
		return literal(source)
	}
	r := reader{source: []byte(source), used: map[string]bool{}}
	root := r.parse()
	r.note(root)
	if blocks := r.blocks(root, 0); len(blocks) > 0 {
		return blocks
	}
	return literal(source) // marks around nothing
}

// literal is s as a paragraph, or nothing if s is blank.
func literal(s string) []Block { return some(Paragraph{Literal(s)}) }

// oversized tells whether source is larger than the parser can be trusted with.
func oversized(source string) bool {
	if len(source) > maxSource {
		return true
	}
	lines, pipes := 0, 0
	for line := range strings.Lines(source) {
		lines++
		pipes = max(pipes, strings.Count(line, "|"))
	}
	return lines*pipes > maxCells
}

// reader reads one source.
type reader struct {
	source []byte
	used   map[string]bool // normalised labels of the link definitions that links refer to
}

func (r reader) parse() ast.Node {
	md := goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.Linkify))
	return md.Parser().Parse(text.NewReader(r.source), parser.WithContext(parser.NewContext()))
}

// note remembers which link definitions are used.
func (r reader) note(root ast.Node) {
	_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		var ref *ast.ReferenceLink
		switch n := n.(type) {
		case *ast.Link:
			ref = n.Reference
		case *ast.Image:
			ref = n.Reference
		}
		if entering && ref != nil {
			r.used[util.ToLinkReference(ref.Value)] = true
		}
		return ast.WalkContinue, nil
	})
}

func (r reader) blocks(parent ast.Node, depth int) []Block {
	var blocks []Block
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		blocks = append(blocks, r.block(n, depth)...)
	}
	return blocks
}

func (r reader) block(n ast.Node, depth int) []Block {
	switch n := n.(type) {
	case *ast.Heading:
		return some(Heading{n.Level, r.text(n)})
	case *ast.ThematicBreak:
		return []Block{Rule{}}
	case *ast.FencedCodeBlock:
		return []Block{Code{language(n.Language(r.source)), r.raw(n)}}
	case *ast.CodeBlock:
		return []Block{Code{Text: r.raw(n)}}
	case *ast.HTMLBlock:
		return r.html(n)
	case *ast.LinkReferenceDefinition:
		if r.used[util.ToLinkReference(n.Label)] {
			return nil
		}
		return literal(r.raw(n))
	case *ast.Blockquote:
		return r.quote(n, depth)
	case *ast.List:
		return r.list(n, depth)
	case *tableast.Table:
		return []Block{r.table(n)}
	default:
		return some(Paragraph{r.text(n)})
	}
}

// some is b, if it has any text.
func some(b Block) []Block {
	switch b := b.(type) {
	case Paragraph:
		if len(b.Text) == 0 {
			return nil
		}
	case Heading:
		if len(b.Text) == 0 {
			return nil
		}
	}
	return []Block{b}
}

func (r reader) quote(n ast.Node, depth int) []Block {
	inner := r.blocks(n, depth+1)
	if depth >= maxDepth || len(inner) == 0 {
		return inner
	}
	return []Block{Quote{inner}}
}

func (r reader) list(n *ast.List, depth int) []Block {
	list := List{Ordered: n.IsOrdered(), Start: n.Start, Tight: n.IsTight}
	var flat []Block
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		inner := r.blocks(item, depth+1)
		list.Items = append(list.Items, Item{Blocks: inner})
		flat = append(flat, inner...)
	}
	if depth >= maxDepth {
		return flat
	}
	return []Block{list}
}

func (r reader) html(n *ast.HTMLBlock) []Block {
	s := r.raw(n)
	if n.HasClosure() {
		s += "\n" + string(n.ClosureLine.Value(r.source))
	}
	return literal(strings.Trim(s, "\n"))
}

// raw is the text of a block as it was written, without its final line end.
func (r reader) raw(n ast.Node) string {
	var b strings.Builder
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		b.Write(line.Value(r.source))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// language is the first word of what follows an opening fence, as far as it can stand there again.
func language(info []byte) string {
	s := string(info)
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || strings.ContainsRune("`<>&", r) }) {
		return ""
	}
	return s
}

func (r reader) table(n *tableast.Table) Table {
	t := Table{Columns: make([]Column, len(n.Alignments))}
	for i, a := range n.Alignments {
		t.Columns[i].Align = align(a)
	}
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		cells := r.row(row)
		for i, c := range cells {
			t.Columns[i].Width = max(t.Columns[i].Width, columns(c.String()))
		}
		if row.Kind() == tableast.KindTableHeader {
			t.Header = cells
			continue
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

func align(a tableast.Alignment) Align {
	switch a {
	case tableast.AlignRight:
		return Right
	case tableast.AlignCenter:
		return Center
	default:
		return Left
	}
}

func (r reader) row(row ast.Node) []Text {
	var cells []Text
	for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
		t := r.text(cell)
		if cell.NextSibling() == nil {
			t = append(t, r.excess(cell)...)
		}
		for i := range t {
			t[i].Text = strings.ReplaceAll(t[i].Text, "\n", " ")
		}
		cells = append(cells, t)
	}
	return cells
}

// excess is what stands in a row after its last column. Browsers ignore it; here it stays with the last cell.
func (r reader) excess(last ast.Node) Text {
	if last.Lines() == nil || last.Lines().Len() == 0 {
		return nil
	}
	line, _, _ := strings.Cut(string(r.source[last.Lines().At(0).Stop:]), "\n")
	rest := strings.Trim(line, "| \t")
	if rest == "" {
		return nil
	}
	return Text{{Text: " | " + rest}}
}

// text reads the inline content of n.
func (r reader) text(n ast.Node) Text {
	var t inlines
	r.inline(n, Run{}, &t)
	return t.text().trim()
}

// inlines collects runs and joins those of one look.
type inlines struct {
	runs Text
	look Run             // of what is in last
	last strings.Builder // the text of the run that is being collected
	size int             // of all text, in bytes
}

func (t *inlines) add(look Run, s string) {
	if look != t.look {
		t.flush()
		t.look = look
	}
	t.last.WriteString(s)
	t.size += len(s)
}

func (t *inlines) flush() {
	if t.last.Len() > 0 {
		t.runs = append(t.runs, Run{t.last.String(), t.look.Style, t.look.Link})
	}
	t.last.Reset()
}

func (t *inlines) text() Text {
	t.flush()
	return t.runs
}

// inline adds the children of parent, which look like look.
func (r reader) inline(parent ast.Node, look Run, t *inlines) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Text:
			r.words(n, look, t)
		case *ast.String:
			t.add(look, string(n.Value))
		case *ast.CodeSpan:
			t.add(look.styled(Monospace), r.span(n))
		case *ast.Emphasis:
			r.inline(n, look.styled(emphasis(n.Level)), t)
		case *tableast.Strikethrough:
			r.inline(n, look.styled(Strike), t)
		case *ast.Link:
			r.link(n, n.Destination, look, t)
		case *ast.Image:
			r.link(n, n.Destination, look, t)
		case *ast.AutoLink:
			r.autolink(n, look, t)
		case *ast.RawHTML:
			t.add(look, r.tag(n))
		default:
			r.inline(n, look, t)
		}
	}
}

func (r Run) styled(s Style) Run {
	r.Style |= s
	return r
}

func emphasis(level int) Style {
	if level == 1 {
		return Italic
	}
	return Bold
}

func (r reader) words(n *ast.Text, look Run, t *inlines) {
	s := string(n.Segment.Value(r.source))
	if !n.IsRaw() {
		s = unescape(s)
	}
	t.add(look, s)
	if n.SoftLineBreak() || n.HardLineBreak() {
		t.add(look, "\n")
	}
}

// span is the text of inline code, on one line.
func (r reader) span(n ast.Node) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if c, ok := c.(*ast.Text); ok {
			b.Write(c.Segment.Value(r.source))
		}
	}
	return strings.ReplaceAll(b.String(), "\n", " ")
}

// tag is an HTML tag inside text, literally, unless it only breaks the line.
func (r reader) tag(n *ast.RawHTML) string {
	var b strings.Builder
	for i := range n.Segments.Len() {
		segment := n.Segments.At(i)
		b.Write(segment.Value(r.source))
	}
	switch strings.ToLower(b.String()) {
	case "<br>", "<br/>", "<br />":
		return "\n"
	}
	return b.String()
}

// link adds a link or an image. An image inside a link leads where the link leads.
func (r reader) link(n ast.Node, destination []byte, look Run, t *inlines) {
	target := unescape(string(destination))
	safe, ok := safeLink(target)
	before := t.size
	inner := look
	if ok && look.Link == "" {
		inner.Link = safe
	}
	r.inline(n, inner, t)
	switch {
	case t.size == before:
		t.add(inner, target)
	case !ok && target != "":
		t.add(look, " ("+target+")")
	}
}

func (r reader) autolink(n *ast.AutoLink, look Run, t *inlines) {
	target := string(n.URL(r.source))
	if n.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(target), "mailto:") {
		target = "mailto:" + target
	}
	if safe, ok := safeLink(target); ok && look.Link == "" {
		look.Link = safe
	}
	t.add(look, string(n.Label(r.source)))
}

// unescape resolves backslash escapes and entities (CommonMark 2.4 and 2.5), each once.
func unescape(s string) string {
	if !strings.ContainsAny(s, `\&`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] == '\\' && i+1 < len(s) && util.IsPunct(s[i+1]) {
			b.WriteByte(s[i+1])
			i += 2
			continue
		}
		if s[i] == '&' {
			if value, n := entity(s[i:]); n > 0 {
				b.WriteString(value)
				i += n
				continue
			}
		}
		b.WriteByte(s[i])
		i++
	}
	return clean(b.String())
}

// longestEntity is the length of the longest entity there is, in bytes.
const longestEntity = len("&CounterClockwiseContourIntegral;")

// entity resolves the entity at the start of s. n is its length, or 0 if there is none.
func entity(s string) (value string, n int) {
	end := strings.IndexByte(s[:min(len(s), longestEntity)], ';')
	if end < 2 {
		return "", 0
	}
	name := s[1:end]
	if name[0] != '#' {
		e, ok := util.LookUpHTML5EntityByName(name)
		if !ok {
			return "", 0
		}
		return string(e.Characters), end + 1
	}
	digits, base, most := name[1:], 10, 7
	if digits != "" && (digits[0] == 'x' || digits[0] == 'X') {
		digits, base, most = digits[1:], 16, 6
	}
	code, err := strconv.ParseUint(digits, base, 32)
	if err != nil || len(digits) > most {
		return "", 0
	}
	if code == 0 || code > unicode.MaxRune {
		code = utf8.RuneError
	}
	return string(rune(code)), end + 1
}
