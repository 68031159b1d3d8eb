package summary

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/store"
)

// lineWidth is the width of a line of the recipe; a longer item still stays whole.
const lineWidth = 80

// renderRecipe prints how a dataset was made, a row for each transform.
func renderRecipe(b *strings.Builder, r *store.Recipe) {
	rows := []Step{{"program", []string{r.Program}}}
	if r.Decoder != "" {
		rows = append(rows, Step{"decoder", []string{r.Decoder}})
	}
	rows = append(rows, Steps(r.Transforms)...)
	options := Step{Op: "options"}
	for _, k := range slices.Sorted(maps.Keys(r.Options)) {
		options.Params = append(options.Params, k+" "+r.Options[k])
	}
	if options.Params != nil {
		rows = append(rows, options)
	}
	t := cli.Table{Indent: 2}
	column := 0
	for i := range rows {
		rows[i].Op = shell.Line(rows[i].Op)
		column = max(column, t.Indent+utf8.RuneCountInString(rows[i].Op)+2)
	}
	for _, row := range rows {
		lines := wrap(row.Params, lineWidth-column)
		if lines == nil {
			lines = []string{""}
		}
		for _, line := range lines {
			t.Add(row.Op, line)
			row.Op = ""
		}
	}
	fmt.Fprintf(b, "\nRecipe\n%s", &t)
}

// wrap joins items by commas into lines of at most about width characters.
func wrap(items []string, width int) (lines []string) {
	line := ""
	for i, item := range items {
		if i < len(items)-1 {
			item += ","
		}
		if line != "" && len(line)+1+len(item) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += item
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// Step is one transform of a recipe.
type Step struct {
	Op     string
	Params []string // "name value", in the order of the recipe
}

// Steps parses the transforms of a recipe for people. It returns nil for anything else: a recipe of
// another version must not keep anybody from looking at the dataset.
func Steps(recipe json.RawMessage) []Step {
	var entries []json.RawMessage
	if json.Unmarshal(recipe, &entries) != nil {
		return nil
	}
	var out []Step
	for _, entry := range entries {
		s, err := parseStep(entry)
		if err != nil {
			return nil
		}
		out = append(out, s)
	}
	return out
}

// parseStep parses an object token by token, because a Go map would lose the order of its keys.
func parseStep(entry json.RawMessage) (s Step, err error) {
	d := json.NewDecoder(bytes.NewReader(entry))
	if _, err := d.Token(); err != nil {
		return s, err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return s, err
		}
		name, ok := key.(string)
		if !ok {
			return s, fmt.Errorf("%v is not a name", key)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return s, err
		}
		s.set(name, value)
	}
	return s, nil
}

// set adds a parameter. A true flag is only named, and false, null and empty values are left out.
func (s *Step) set(name string, value json.RawMessage) {
	text := plainJSON(value)
	switch {
	case name == "op":
		s.Op = text
	case text == "true":
		s.Params = append(s.Params, name)
	case text != "" && text != "null" && text != "false":
		s.Params = append(s.Params, name+" "+text)
	}
}

// plainJSON returns a value for people: texts without quotes, a list of one element as the element,
// long lists shortened, floats with four digits.
func plainJSON(value json.RawMessage) string {
	var list []json.RawMessage
	var text string
	switch {
	case json.Unmarshal(value, &text) == nil:
		return text
	case json.Unmarshal(value, &list) == nil && list != nil:
		var parts []string
		for _, v := range list {
			parts = append(parts, plainJSON(v))
		}
		if len(parts) == 1 {
			return parts[0]
		}
		if n := len(parts); n > listed {
			return "(" + strings.Join(parts[:listed/2], ", ") + ", ... " + strconv.Itoa(n) + " values)"
		}
		return "(" + strings.Join(parts, ", ") + ")"
	}
	if x, err := strconv.ParseFloat(string(value), 64); err == nil && len(value) > 8 {
		return strconv.FormatFloat(x, 'g', 4, 64)
	}
	return string(value)
}

// listed is the number of values of a list that are shown; --json has all of them, with all digits.
const listed = 8
