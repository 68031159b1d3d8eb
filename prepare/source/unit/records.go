package unit

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/penstock/penstock/prepare/source/array"
	"github.com/penstock/penstock/tensor"
)

// Align says what happens if the arrays of a unit differ in length, or if named columns, such as genes, differ
// between units.
type Align string

// Values of Align. "" is an error for arrays that differ in length and for columns that differ in name: a silent
// choice would lose data.
const (
	AlignStart        Align = "start"        // the first rows, as many as the shortest array has
	AlignEnd          Align = "end"          // the last rows
	AlignIntersection Align = "intersection" // the columns that all units have
	AlignUnion        Align = "union"        // the columns that any unit has
)

var aligns = []Align{AlignStart, AlignEnd, AlignIntersection, AlignUnion}

// Set implements pflag.Value.
func (a *Align) Set(text string) error {
	if *a = Align(text); !slices.Contains(aligns, *a) {
		return fmt.Errorf("it is one of %v", aligns)
	}
	return nil
}

// String implements pflag.Value.
func (a *Align) String() string { return string(*a) }

// Type implements pflag.Value.
func (a *Align) Type() string { return "end" }

// Records declares the records of a source.
type Records struct {
	Levels []string   // globs of the names on each level: of files, if there are several, then of groups
	Type   *array.Raw // type of files without a header; nil for other files
	Rows   bool       // each row of a unit is a record; otherwise each unit
	Align  Align      // for Rows
	File   string     // path of the first unit if units are files, whose rows continue the rows of the file before; "" if not
}

// rows ends the notation of Records whose records are rows. A value of Align stands before the bracket.
const rows = "[:]"

// Parse reads a declaration: data/* (each group is a record), data/*[:] (each row of each group), data/*[:start]
// (the first rows of each group, as many as its shortest array has), or *.bin:float32[*,4] (each file, which has
// rows of four numbers and no header).
func Parse(text string) (*Records, error) {
	fail := func(why string) (*Records, error) {
		return nil, fmt.Errorf("records %q: %s; write the path of the units with * for names, such as 'data/*' for a record "+
			"of each group, or 'data/*%s' for a record of each row of them", text, why, rows)
	}
	r, inner := new(Records), text
	// "" stands for the plain [:].
	for _, align := range append([]Align{""}, aligns...) {
		if before, found := strings.CutSuffix(text, "[:"+string(align)+"]"); found {
			r.Rows, r.Align, inner = true, align, before
		}
	}
	if inner == "" {
		return fail("it names no unit")
	}
	// The last colon divides the text: a name may contain colons.
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

// WithAlign returns the declaration text with a value of Align.
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

// joinsNames reports whether columns are matched by name.
func (r *Records) joinsNames() bool { return r.Align == AlignIntersection || r.Align == AlignUnion }

// String returns the notation that Parse reads; "" without levels, where the whole source is the only unit.
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

// Contains reports whether a path in a file is the path of a unit or of something in a unit.
func (r *Records) Contains(path string) bool {
	names := strings.Split(path, "/")
	for level := range r.Levels {
		if level >= len(names) || !r.Matches(level, names[level]) {
			return false
		}
	}
	return true
}

// Below returns r without its first level; false if there is no other level.
func (r *Records) Below() (*Records, bool) {
	if len(r.Levels) == 1 {
		return nil, false
	}
	below := *r
	below.Levels = r.Levels[1:]
	return &below, true
}
