package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// place is what stands between two comments of a page.
var place = regexp.MustCompile(`(?s)<!-- (table|rest|text|targets|ratios)( [^\n]*?)? -->\n.*?<!-- end -->`)

// fill returns a page with all of its places filled.
func fill(page string, all results) (string, error) {
	var errs []error
	taken := claimed(page)
	page = place.ReplaceAllStringFunc(page, func(old string) string {
		m := place.FindStringSubmatch(old)
		lines, err := all.lines(m[1], strings.TrimSpace(m[2]), taken)
		if err != nil {
			errs = append(errs, err)
			return old
		}
		first, _, _ := strings.Cut(old, "\n")
		return first + "\n" + strings.Join(lines, "\n") + "\n<!-- end -->"
	})
	return page, errors.Join(errs...)
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
		return nil, fmt.Errorf("there is no %s.txt", name)
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
	lines = slices.CompactFunc(slices.Clone(lines), func(a, b string) bool { return a == "" && b == "" })
	text := strings.Trim(strings.Join(lines, "\n"), "\n")
	return []string{"", "```text", text, "```", ""}
}
