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

// Selection is one element of --fields: a column of the source, the name of its field, its
// type.
type Selection struct {
	Column string
	Field  string // "" names the field after Column
	Type   string // "" finds the type by the cells

	Content Content // in place of Type: the field is an annotation of an image
}

// String returns the text that ParseFields reads.
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

// CellType returns Type or, for a selection with a Content, the type of cells that have the Content.
func (w Selection) CellType() string {
	if w.Content.Name != "" {
		return w.Content.CellType()
	}
	return w.Type
}

// FieldName returns the name of the field.
func (w Selection) FieldName() string {
	if w.Field != "" {
		return w.Field
	}
	return layout.FieldName(w.Column)
}

// quoted returns the name of a column in the syntax of --fields: a name with a character that would end it is between
// double quotes, as in CSV.
func quoted(column string) string {
	if !strings.ContainsAny(column, `,=:[]`) && !strings.HasPrefix(column, `"`) && strings.TrimSpace(column) == column {
		return column
	}
	return `"` + strings.ReplaceAll(column, `"`, `""`) + `"`
}

// FieldsCommand returns the command line that begins with prefix and selects these columns; "" if a name cannot be
// printed.
func FieldsCommand(prefix string, columns []string) string {
	var list []string
	for _, c := range columns {
		list = append(list, quoted(c))
	}
	return shell.Command(strings.TrimSpace(prefix+" --fields"), strings.Join(list, ","))
}

// longestFlag is the longest --fields that a message shows, in bytes.
const longestFlag = 2000

// Distinct refuses a selection in which two columns would become one field. fields[i] is the name of the field of
// list[i]. The error ends in the flag that gives each field its own name.
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

// cutQuoted takes a quoted name from the front of an element. It returns false if there is none, or if the name does
// not end.
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

// ParseFields reads COLUMN=FIELD:TYPE,..., where =FIELD and :TYPE may be omitted. A comma inside of brackets belongs to
// the type, and a comma inside of quotes to the column.
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

// nameGoesOn reports whether the text after a colon belongs to the name of a column, as in
// Keras' kernel:0: no type begins with a digit.
func nameGoesOn(rest string) bool { return rest != "" && rest[0] >= '0' && rest[0] <= '9' }

// cutOutside cuts at the first comma outside of brackets.
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

// Matching returns the columns that a text of names and globs, with a plus between them, stands for, each part in the
// order of the table. It also returns the first part that matches no column.
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

// Undecided returns the error for columns that cannot become fields. If the user has named no columns, the error says
// how to select only the other columns.
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
