package column

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/shell"
)

// Selection is one entry of --fields: a column of the source, and the name and type of its field.
type Selection struct {
	Column string
	Field  string // "" derives the name from Column
	Type   string // "" guesses the type from the cells

	// Content declares the field as an annotation of an image. Type is then "".
	Content Content
}

// String returns the entry in the notation of ParseFields.
func (w Selection) String() string {
	text := quoted(w.Column)
	if w.Field != "" {
		text += "=" + w.Field
	}
	if w.Type != "" {
		text += ":" + w.Type
	}
	if w.Content.Name != "" {
		text += ":" + w.Content.String()
	}
	return text
}

// ErrArray returns the error for a selection that gives a type to an array, nil if it gives none.
func (w Selection) ErrArray() error {
	switch w.Type {
	case "":
		return nil
	case "image":
		return fmt.Errorf("--fields %s: an array has a type of its own; write :hwc for pixels (H, W, C), :chw for (C, H, W)", w)
	}
	return fmt.Errorf("--fields %s: an array has a type of its own; leave :%s out, and change it with a transform", w, w.Type)
}

// CellType returns Type, or for a selection with a Content the type of the cells that the content needs.
func (w Selection) CellType() string {
	if w.Content.Name != "" {
		return w.Content.CellType()
	}
	return w.Type
}

// FieldName returns the name of the field: Field, or a name made from Column.
func (w Selection) FieldName() string {
	if w.Field != "" {
		return w.Field
	}
	return layout.FieldName(w.Column)
}

// quoted returns a column name in the notation of --fields. Names with characters of the notation are in double
// quotes, with quotes doubled as in CSV.
func quoted(column string) string {
	if !strings.ContainsAny(column, `,=:[]`) && !strings.HasPrefix(column, `"`) && strings.TrimSpace(column) == column {
		return column
	}
	return `"` + strings.ReplaceAll(column, `"`, `""`) + `"`
}

// Names returns a selection of columns in the notation of ParseFields.
func Names(columns []string) string {
	var list []string
	for _, c := range columns {
		list = append(list, quoted(c))
	}
	return strings.Join(list, ",")
}

// FieldsCommand returns a command line that begins with prefix and selects columns; "" if a name cannot be printed
// safely.
func FieldsCommand(prefix string, columns []string) string {
	return shell.Command(strings.TrimSpace(prefix+" --fields"), Names(columns))
}

// longestFlag is the length in bytes of the longest --fields that a message suggests.
const longestFlag = 2000

// Distinct returns an error if two columns would become one field. fields[i] is the field name of list[i]. The
// error ends with a --fields that gives each field a name of its own.
func Distinct(list []Selection, fields []string) error {
	var err error
	first, words := make(map[string]int, len(list)), make([]string, len(list))
	for i, name := range fields {
		w, n := list[i], 2
		if k, twice := first[name]; twice {
			err = cmp.Or(err, fmt.Errorf("columns %q and %q would both be the field %q", list[k].Column, w.Column, name))
			for w.Field = name; slices.Contains(fields, w.Field) || first[w.Field] > 0; n++ {
				w.Field = fmt.Sprint(name, "_", n)
			}
			name = w.Field
		}
		first[name], words[i] = i, w.String()
	}
	if err == nil {
		return nil
	}
	if flag := shell.Command("--fields", strings.Join(words, ",")); flag != "" && len(flag) <= longestFlag {
		return fmt.Errorf("%w; name them: %s", err, flag)
	}
	return fmt.Errorf("%w; name them with --fields", err)
}

// cutQuoted removes a quoted name from the front of an entry. If the entry does not begin with a quoted name or
// its quote is not closed, is is false and rest is text.
func cutQuoted(text string) (name, rest string, is bool) {
	rest, is = strings.CutPrefix(text, `"`)
	for is {
		part, after, found := strings.Cut(rest, `"`)
		if name += part; !found {
			return "", text, false
		}
		if rest = after; !strings.HasPrefix(rest, `"`) {
			return name, rest, true
		}
		name, rest = name+`"`, rest[1:]
	}
	return "", text, false
}

// ParseFields reads --fields: COLUMN=FIELD:TYPE,..., where =FIELD and :TYPE are optional. Commas in brackets belong
// to a type, and commas in quotes to a column name. The name is divided at its last colon and last equals sign, as
// column names can contain both.
func ParseFields(text string) (list []Selection, err error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	for more := true; more; {
		all := strings.TrimSpace(text)
		name, rest, quotes := cutQuoted(all)
		rest, text, more = cutOutside(rest)
		part := strings.TrimSuffix(all[:len(all)-len(text)], ",")
		w := Selection{Column: strings.TrimSpace(rest)}
		if i := strings.LastIndexByte(w.Column, ':'); i >= 0 && !nameGoesOn(w.Column[i+1:]) {
			w.Column, w.Type = w.Column[:i], strings.TrimSpace(w.Column[i+1:])
			content, is, err := parseContent(w.Type)
			if w.Content = content; is {
				w.Type = ""
			} else if _, err = ParseType(w.Type); err != nil {
				return nil, fmt.Errorf("--fields %s: %w", part, err)
			}
			if err != nil {
				return nil, fmt.Errorf("--fields %s: %w", part, err)
			}
		}
		if i := strings.LastIndexByte(w.Column, '='); i >= 0 {
			w.Column, w.Field = w.Column[:i], strings.TrimSpace(w.Column[i+1:])
			if w.Field == "" || layout.FieldName(w.Field) != w.Field {
				return nil, fmt.Errorf("--fields %s: of fields, %s", part, layout.FieldNameRule)
			}
		}
		if w.Column = strings.TrimSpace(w.Column); quotes && w.Column != "" {
			return nil, fmt.Errorf("--fields %s: write \"COLUMN\"=FIELD:TYPE", part)
		}
		if w.Column = cmp.Or(w.Column, name); w.Column == "" {
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

// nameGoesOn reports whether the text after a colon is part of the column name, as in Keras' kernel:0. No type
// begins with a digit.
func nameGoesOn(rest string) bool { return rest != "" && rest[0] >= '0' && rest[0] <= '9' }

// cutOutside cuts text at the first comma that is not in brackets.
func cutOutside(text string) (before, after string, found bool) {
	depth := 0
	for i, r := range text {
		switch {
		case r == '[':
			depth++
		case r == ']':
			depth--
		case r == ',' && depth <= 0:
			return text[:i], text[i+1:], true
		}
	}
	return text, "", false
}

// Matching returns the columns that text selects: names and globs joined by plus signs. The columns of each part
// are in the order of the table, without repetitions. missing is the first part that matches no column.
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

// Undecided returns the error for the columns that cannot become fields. If the user has selected no columns, the
// error ends with the --fields that selects all good ones.
func Undecided(errs []error, good []string, named bool) error {
	err := errors.Join(errs...)
	if err == nil || len(good) == 0 || named {
		return err
	}
	if flag := FieldsCommand("", good); flag != "" {
		return fmt.Errorf("%w; leave them out: %s", err, flag)
	}
	return fmt.Errorf("%w; leave them out with --fields", err)
}
