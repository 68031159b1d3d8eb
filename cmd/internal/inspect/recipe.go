package inspect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/penstock/penstock/store"
)

// optionsWidth is how long a line of options becomes.
const optionsWidth = 76

// renderRecipe prints how a dataset was made: a line for each transform.
func renderRecipe(b *strings.Builder, r *store.Recipe) {
	t := table{indent: 2}
	t.add("program", printable(r.Program))
	if r.Decoder != "" {
		t.add("decoder", printable(r.Decoder))
	}
	for _, step := range steps(r.Transforms) {
		t.add(printable(step.Op), printable(strings.Join(step.Params, ", ")))
	}
	var options []string
	for _, k := range slices.Sorted(maps.Keys(r.Options)) {
		options = append(options, k+" "+r.Options[k])
	}
	name := "options"
	for _, line := range wrap(options, optionsWidth) {
		t.add(name, printable(line))
		name = ""
	}
	fmt.Fprintf(b, "\nRecipe\n%s", &t)
}

// wrap joins items by commas into lines of about width characters.
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

// step is a transform of a recipe.
type step struct {
	Op     string
	Params []string // "name value", in the order of the recipe
}

// steps reads the transforms of a recipe. What is not a list of objects gives none: a recipe
// is not needed to read the dataset.
func steps(recipe json.RawMessage) []step {
	var entries []json.RawMessage
	if json.Unmarshal(recipe, &entries) != nil {
		return nil
	}
	var out []step
	for _, entry := range entries {
		s, err := parseStep(entry)
		if err != nil {
			return nil
		}
		out = append(out, s)
	}
	return out
}

// parseStep reads by token, because a map would lose the order.
func parseStep(entry json.RawMessage) (s step, err error) {
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
			return s, fmt.Errorf("%v is no name", key)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return s, err
		}
		s.set(name, value)
	}
	return s, nil
}

func (s *step) set(name string, value json.RawMessage) {
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

// plainJSON writes a value without quotes, and lists as NumPy would; one size is just it.
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
		return "(" + strings.Join(parts, ", ") + ")"
	}
	return string(value)
}
