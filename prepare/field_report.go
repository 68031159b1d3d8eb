package prepare

import (
	"fmt"
	"strings"

	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/prepare/source"
)

// listed is how many neighbors of one type are listed line by line.
const listed = 8

// fieldReport says what the columns of a source become.
type fieldReport struct {
	config Config
	info   source.Info
}

// String lists the fields that the columns become, before the work starts. More than a few
// neighbors of one type share a line.
func (r fieldReport) String() string {
	if r.info.Kind == "imagefolder" {
		return ""
	}
	var b strings.Builder
	for fields := r.info.Fields; len(fields) > 0; {
		n := r.alike(fields)
		if n > listed {
			r.typesOfMany(&b, fields[:n])
		} else {
			for _, f := range fields[:n] {
				r.typeOf(&b, f)
			}
		}
		fields = fields[n:]
	}
	if b.Len() == 0 {
		return ""
	}
	return fmt.Sprintf("%s is a source of kind %s\n%s", shell.Line(r.config.Source), r.info.Kind, &b)
}

// alike counts the first fields that are of one type and have their own columns.
func (r fieldReport) alike(fields []source.Field) int {
	first := r.becomes(fields[0])
	for i, f := range fields {
		if !strings.HasPrefix(f.Origin, "column ") && f.Origin != f.Name || r.becomes(f) != first {
			return max(i, 1)
		}
	}
	return len(fields)
}

func (r fieldReport) typeOf(b *strings.Builder, f source.Field) {
	switch f.Origin {
	case "":
	case f.Name:
		fmt.Fprintf(b, "%s: %s\n", f.Name, r.becomes(f))
	default:
		fmt.Fprintf(b, "%s becomes %s: %s\n", shell.Line(f.Origin), f.Name, r.becomes(f))
	}
}

// typesOfMany writes a line for columns that each become a field, and the --fields flag
// that makes one array of all columns.
func (r fieldReport) typesOfMany(b *strings.Builder, fields []source.Field) {
	first, last := fields[0].Name, fields[len(fields)-1].Name
	if fields[0].Origin == first {
		fmt.Fprintf(b, "%s to %s, %d fields: %s each\n", first, last, len(fields), r.becomes(fields[0]))
		return
	}
	fmt.Fprintf(b, "columns %s to %s become %d fields: %s each\n", first, last, len(fields), r.becomes(fields[0]))
	if prefix := commonPrefix(fields); prefix != "" && !fields[0].Ragged && fields[0].Classes == nil {
		if word, ok := shell.Quote(fmt.Sprintf("%s*=%s:%s", prefix, prefix, fields[0].DType)); ok {
			fmt.Fprintf(b, "to make one field of them, use --fields %s\n", word)
		}
	}
}

// becomes says what a field of the source is.
func (r fieldReport) becomes(f source.Field) string {
	if f.Image() && !r.config.Images.KeepEncoded {
		return "images, to be decoded"
	}
	return fieldSummary(f.Field).Type() + fieldSummary(f.Field).Meaning()
}

// commonPrefix returns the common prefix of the names of all fields; "" if the prefix cannot be written in
// --fields as it is.
func commonPrefix(fields []source.Field) string {
	prefix := strings.TrimRight(fields[0].Name, "0123456789")
	plain := func(r rune) bool {
		return r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
	}
	if strings.IndexFunc(prefix, func(r rune) bool { return !plain(r) }) >= 0 {
		return ""
	}
	for _, f := range fields {
		if !strings.HasPrefix(f.Name, prefix) {
			return ""
		}
	}
	return prefix
}
