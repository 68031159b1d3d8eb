package unit

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/penstock/penstock/prepare/source/array"
	"github.com/penstock/penstock/tensor"
)

// Align says which rows are records if the arrays of a unit have several lengths, or which columns a field has if named
// columns, such as genes, differ between units.
type Align string

// Ways to align. The default, "", refuses arrays of several lengths, and columns of different names: a choice in
// silence would lose data.
const (
	AlignStart        Align = "start"        // the first rows, as many as the shortest array has
	AlignEnd          Align = "end"          // the last rows
	AlignIntersection Align = "intersection" // the columns whose names all units have
	AlignUnion        Align = "union"        // the columns whose names any unit has
)

var aligns = []Align{AlignStart, AlignEnd, AlignIntersection, AlignUnion}

// Set implements pflag.Value.
func (a *Align) Set(text string) error {
	if *a = Align(text); !slices.Contains(aligns, *a) {
		return fmt.Errorf("it is one of %v", aligns)
	}
	return nil
}

// String returns the text that Set takes.
func (a *Align) String() string { return string(*a) }

// Type implements pflag.Value.
func (a *Align) Type() string { return "end" }

// Records says where the records of a source are.
type Records struct {
	Levels []string   // globs of the names on each level: first of files, if there are several, then of groups
	Type   *array.Raw // the type of files without a header; nil for others
	Rows   bool       // each row of a unit is a record; otherwise each unit is
	Align  Align      // how rows are aligned
}

// rows ends a text of Records whose records are rows. A way to align is written before the bracket.
const rows = "[:]"

// Parse reads the text that String writes, such as data/* (each group is a record), data/*[:] (each row of each group),
// data/*[:start] (the first rows of each group, as many as its shortest array has) or *.bin:float32[*,4] (each file,
// which has rows of four numbers and no header).
func Parse(text string) (*Records, error) {
	fail := func(why string) (*Records, error) {
		return nil, fmt.Errorf("records %q: %s; write the path of the units with * for names, such as 'data/*' for a record "+
			"of each group, or 'data/*%s' for a record of each row of them", text, why, rows)
	}
	r, inner := new(Records), text
	for _, align := range append([]Align{""}, aligns...) {
		if before, found := strings.CutSuffix(text, "[:"+string(align)+"]"); found {
			r.Rows, r.Align, inner = true, align, before
		}
	}
	if inner == "" {
		return fail("it names no unit")
	}
	if i := strings.LastIndexByte(inner, ':'); i > 0 && isType(inner[i+1:]) {
		var err error
		if r.Type, err = array.ParseRaw(inner[i+1:]); err != nil {
			return nil, fmt.Errorf("records %q: %w; write it as in '*.bin:float32[*,4]'", text, err)
		}
		inner = inner[:i]
	}
	for _, level := range strings.Split(strings.Trim(inner, "/"), "/") {
		if _, err := path.Match(level, ""); err != nil {
			return fail(fmt.Sprintf("%q is not a pattern", level))
		}
		if level == "" {
			return fail("a name is empty")
		}
		if strings.Contains(level, rows) {
			return fail(rows + " is written at the end")
		}
		r.Levels = append(r.Levels, level)
	}
	return r, nil
}

// isType reports whether the text after a colon is a type, and not part of a name.
func isType(text string) bool {
	name, axes, isArray := strings.Cut(strings.TrimPrefix(text, ">"), "[")
	_, err := tensor.ParseDType(name)
	return err == nil || isArray && name != "" && strings.Trim(axes, "*,0123456789 ") == "]"
}

// WithAlign returns the text of records whose rows are aligned.
func WithAlign(text string, align Align) (string, error) {
	if align == "" {
		return text, nil
	}
	if text == "" && (&Records{Align: align}).joinsNames() {
		text = "*" + rows // files of cells
	}
	r, err := Parse(text)
	switch {
	case !slices.Contains(aligns, align):
		return "", fmt.Errorf("align %q: it is one of %v", align, aligns)
	case err != nil:
		return "", err
	case !r.Rows:
		return "", fmt.Errorf("align %q is for records that are rows, such as 'data/*%s'", align, rows)
	}
	r.Align = align
	return r.String(), nil
}

// joinsNames reports whether columns are joined by their names.
func (r *Records) joinsNames() bool { return r.Align == AlignIntersection || r.Align == AlignUnion }

// String returns the text of r; "" if r has no levels, as the source is the only unit.
func (r *Records) String() string {
	if len(r.Levels) == 0 {
		return ""
	}
	text := strings.Join(r.Levels, "/")
	if r.Type != nil {
		text += ":" + r.Type.String()
	}
	if r.Rows {
		text += "[:" + string(r.Align) + "]"
	}
	return text
}

// Matches reports whether the glob of a level matches a name.
func (r *Records) Matches(level int, name string) bool {
	ok, _ := path.Match(r.Levels[level], name)
	return ok
}

// Contains reports whether a path in a file is the path of a unit, or leads into one.
func (r *Records) Contains(path string) bool {
	names := strings.Split(path, "/")
	for level := range r.Levels {
		if level >= len(names) || !r.Matches(level, names[level]) {
			return false
		}
	}
	return true
}

// Below returns r without its first level, and false if that is the only level.
func (r *Records) Below() (*Records, bool) {
	if len(r.Levels) == 1 {
		return nil, false
	}
	below := *r
	below.Levels = r.Levels[1:]
	return &below, true
}
