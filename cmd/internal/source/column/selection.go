package column

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/penstock/penstock/cmd/internal/source"
	"github.com/penstock/penstock/internal/sys/shell"
)

// TypeNames describes Selection.Type for people.
const TypeNames = "image (a path), base64 (an image), label, text, or a type of numbers such as int64, float32[4], " +
	"float32[*] or float32[*,4] (any number of rows)"

// Selection is one element of --fields: a column of the source, the name of its field, its
// type.
type Selection struct {
	Column string
	Field  string // "" for one that is made of Column
	Type   string // "" for the one that is found out
}

// String returns what ParseFields read.
func (w Selection) String() string {
	text := w.Column
	if w.Field != "" {
		text += "=" + w.Field
	}
	if w.Type != "" {
		text += ":" + w.Type
	}
	return text
}

func (w Selection) FieldName() string {
	if w.Field != "" {
		return w.Field
	}
	return source.FieldName(w.Column)
}

// ParseFields reads COLUMN=FIELD:TYPE,..., where =FIELD and :TYPE may be left out. A comma
// inside of brackets belongs to the type.
func ParseFields(text string) (list []Selection, err error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	for _, part := range splitOutside(text) {
		w := Selection{Column: strings.TrimSpace(part)}
		if i := strings.LastIndexByte(w.Column, ':'); i >= 0 && !nameGoesOn(w.Column[i+1:]) {
			w.Column, w.Type = w.Column[:i], strings.TrimSpace(w.Column[i+1:])
			if _, err := ParseType(w.Type); err != nil {
				return nil, fmt.Errorf("--fields %s: %w", part, err)
			}
		}
		if i := strings.LastIndexByte(w.Column, '='); i >= 0 {
			w.Column, w.Field = w.Column[:i], strings.TrimSpace(w.Column[i+1:])
			if w.Field == "" || source.FieldName(w.Field) != w.Field {
				return nil, fmt.Errorf("--fields %s: a field's name is letters, digits, _ and -", part)
			}
		}
		if w.Column = strings.TrimSpace(w.Column); w.Column == "" {
			return nil, fmt.Errorf("--fields %s: names no column; write COLUMN=FIELD:TYPE", part)
		}
		for _, other := range list {
			if other.FieldName() == w.FieldName() {
				return nil, fmt.Errorf("--fields: %s and %s are both the field %q", other, w, w.FieldName())
			}
		}
		list = append(list, w)
	}
	return list, nil
}

// nameGoesOn reports whether what stands behind a colon belongs to the name of a column, as in
// Keras' kernel:0: no type begins with a digit.
func nameGoesOn(rest string) bool { return rest != "" && rest[0] >= '0' && rest[0] <= '9' }

// splitOutside splits at commas that are not inside of brackets.
func splitOutside(text string) (parts []string) {
	depth, begin := 0, 0
	for i, r := range text {
		switch {
		case r == '[':
			depth++
		case r == ']':
			depth--
		case r == ',' && depth <= 0:
			parts = append(parts, text[begin:i])
			begin = i + 1
		}
	}
	return append(parts, text[begin:])
}

// Matching returns the columns that a text of names and globs with a plus between stands for,
// each part in the order of the table, and the first part that stands for none.
func Matching(text string, order []string) (list []string, missing string) {
	for _, part := range strings.Split(text, "+") {
		found := false
		for _, name := range order {
			match, _ := path.Match(part, name)
			if match = match || name == part; match && !slices.Contains(list, name) {
				list = append(list, name)
			}
			found = found || match
		}
		if !found && missing == "" {
			missing = part
		}
	}
	return list, missing
}

// Undecided is the error of columns that make no field. Where the user has named no columns, it says how to take the
// good ones alone.
func Undecided(errs []error, good []string, named bool) error {
	err := errors.Join(errs...)
	if err == nil || len(good) == 0 || named {
		return err
	}
	if flag := shell.Command("--fields", strings.Join(good, ",")); flag != "" {
		return fmt.Errorf("%w; leave them out: %s", err, flag)
	}
	return fmt.Errorf("%w; leave them out with --fields", err)
}
