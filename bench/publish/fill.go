package main

import (
	"regexp"
	"slices"
	"strings"
)

// place is what stands between two comments of a page.
var place = regexp.MustCompile(`(?s)<!-- (table|rest|text|targets|ratios|summary)( [^\n]*?)? -->\n.*?<!-- end -->`)

// fill returns a page with its places filled by what was measured, aims and ratios by what is
// known, and what was missing for some of them, which stay as they are.
func fill(page string, all, known results) (_ string, errs []error) {
	taken := claimed(page)
	page = place.ReplaceAllStringFunc(page, func(old string) string {
		m := place.FindStringSubmatch(old)
		from := all
		if m[1] == "targets" || m[1] == "ratios" || m[1] == "summary" {
			from = known
		}
		lines, err := from.lines(m[1], strings.TrimSpace(m[2]), taken)
		if err != nil {
			errs = append(errs, err)
			return old
		}
		lines = slices.CompactFunc(lines, bothEmpty)
		first, _, _ := strings.Cut(old, "\n")
		return first + "\n" + strings.Join(lines, "\n") + "\n<!-- end -->"
	})
	return page, errs
}

// claimed returns the tables that have a place of their own.
func claimed(page string) (names []string) {
	for _, m := range place.FindAllStringSubmatch(page, -1) {
		if m[1] == "table" {
			names = append(names, strings.TrimSpace(m[2]))
		}
	}
	return names
}

// lines returns what belongs into a place. Tables stand between empty lines, which Markdown
// wants.
func (r results) lines(kind, name string, taken []string) ([]string, error) {
	switch kind {
	case "targets":
		return r.targets()
	case "summary":
		return r.summary()
	case "ratios":
		return r.ratios()
	case "table":
		program, head, _ := strings.Cut(name, ": ")
		t, err := r.table(program, head)
		if err != nil {
			return nil, err
		}
		return apart(t.lines), nil
	}
	if r[name] == nil {
		return nil, notMeasured(name)
	}
	if kind == "text" {
		return fenced(r[name].text), nil
	}
	var lines []string
	for _, t := range r[name].tables {
		if !slices.Contains(taken, name+": "+t.head()) {
			lines = append(lines, apart(t.lines)...)
		}
	}
	return lines, nil
}

func apart(lines []string) []string {
	return slices.Concat([]string{""}, lines, []string{""})
}

// fenced returns lines that Markdown leaves as they are, without empty ones at the ends and
// with one where there were several.
func fenced(lines []string) []string {
	text := strings.Trim(strings.Join(slices.CompactFunc(slices.Clone(lines), bothEmpty), "\n"), "\n")
	if text == "" {
		return nil
	}
	return []string{"", "```text", text, "```", ""}
}

func bothEmpty(a, b string) bool { return a == "" && b == "" }
