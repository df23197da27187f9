package bridge

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/parley-chat/parley/core/llm"
	"github.com/parley-chat/parley/platforms"
)

// Limits of what is read from a file, in bytes.
const (
	imageLimit = 5 << 20
	textLimit  = 256 << 10
)

// imageTypes are those every provider must take (llm-provider §3.1.2).
var imageTypes = []string{"image/png", "image/jpeg", "image/webp"}

// compose makes the message for the model: images become image blocks, texts text blocks; of any other file, and of one
// that cannot be read, the model hears that it is there and why it is not shown.
func (b *Bridge) compose(ctx context.Context, a platforms.Adapter, m platforms.Message) llm.Message {
	content := llm.Text(m.Text)
	for _, f := range m.Files {
		content = append(content, b.fileBlock(ctx, a, f))
	}
	return llm.Message{Role: llm.User, Content: content}
}

func (b *Bridge) fileBlock(ctx context.Context, a platforms.Adapter, f platforms.File) llm.Block {
	if f.Problem != "" {
		return notShown(f, f.Problem)
	}
	fetcher, ok := a.(platforms.Fetcher)
	image := slices.Contains(imageTypes, f.MediaType)
	switch {
	case !ok:
		return notShown(f, "files cannot be read here")
	case !image && !isText(f):
		return notShown(f, "only images (PNG, JPEG, WebP) and texts can be read")
	}
	limit := int64(textLimit)
	if image {
		limit = imageLimit
	}
	if f.Size > limit {
		return notShown(f, fmt.Sprintf("it is larger than %d KiB", limit>>10))
	}
	data, err := read(ctx, fetcher, f, limit)
	if err != nil {
		b.Logger.Warn("a file could not be read", "platform", a.Platform(), "error", err)
		return notShown(f, "it could not be read")
	}
	if image {
		return llm.Block{Type: llm.ImageBlock, MediaType: f.MediaType,
			Source: &llm.ImageSource{Type: "inline", Base64Data: base64.StdEncoding.EncodeToString(data)}}
	}
	if !utf8.Valid(data) || len(data) == 0 {
		return notShown(f, "it is empty, or not text after all")
	}
	return llm.Block{Type: llm.TextBlock, Text: fmt.Sprintf("File %q:\n%s", f.Name, data)}
}

func read(ctx context.Context, fetcher platforms.Fetcher, f platforms.File, limit int64) ([]byte, error) {
	r, err := fetcher.Fetch(ctx, f, limit)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

func notShown(f platforms.File, why string) llm.Block {
	return llm.Block{Type: llm.TextBlock, Text: fmt.Sprintf("[File %q is not shown: %s.]", f.Name, strings.TrimRight(why, "."))}
}

func isText(f platforms.File) bool {
	return strings.HasPrefix(f.MediaType, "text/") ||
		slices.Contains([]string{"application/json", "application/xml", "application/yaml", "application/x-yaml", "application/toml",
			"application/javascript", "application/x-sh"}, f.MediaType)
}
