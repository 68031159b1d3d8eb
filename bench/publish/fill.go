package main

import (
	"fmt"
	"hash/crc32"
	"regexp"
	"slices"
	"strings"
)

// place is the text between two comments of a page, the second with a checksum of it.
var place = regexp.MustCompile(
	`(?s)(<!-- (table|rest|text|targets|ratios)( [^\n]*?)? -->\n.*?)<!-- end( [0-9a-f]{8})? -->`)

// derived are the places that are computed from the tables of the pages.
var derived = []string{"targets", "ratios"}

// fill returns a page with its places filled by what was measured, aims and ratios by what is
// known, and what was missing for some of them, which stay as they are.
func fill(page string, all, known results) (_ string, errs []error) {
	taken := claimed(page)
	page = place.ReplaceAllStringFunc(page, func(old string) string {
		m := place.FindStringSubmatch(old)
		from := all
		if slices.Contains(derived, m[2]) {
			from = known
		}
		lines, err := from.lines(m[2], strings.TrimSpace(m[3]), taken)
		if err != nil {
			if from != nil { // as it is where the pages alone are written
				errs = append(errs, err)
			}
			return old
		}
		lines = slices.CompactFunc(lines, bothEmpty)
		first, _, _ := strings.Cut(old, "\n")
		text := first + "\n" + strings.Join(lines, "\n") + "\n"
		return text + end(text)
	})
	return page, errs
}

// end returns the comment that ends a place with the text before it.
func end(text string) string {
	return fmt.Sprintf("<!-- end %08x -->", crc32.ChecksumIEEE([]byte(text)))
}

// edited returns an error for each place of a page that is not as it was written.
func edited(page string) (errs []error) {
	for _, m := range place.FindAllStringSubmatch(page, -1) {
		if m[0] == m[1]+end(m[1]) {
			continue
		}
		name, again := strings.TrimSpace(m[2]+m[3]), "bench/run pages"
		if program, _, _ := strings.Cut(strings.TrimSpace(m[3]), ":"); program != "" {
			program, _, _ = strings.Cut(program, "-")
			again = "ONLY=" + program + " bench/run docs"
		}
		errs = append(errs, fmt.Errorf("the numbers of %q are not what was measured, or were edited by hand: undo that, or "+
			"write them by %s", name, again))
	}
	return errs
}

// claimed returns the tables that have a place of their own.
func claimed(page string) (names []string) {
	for _, m := range place.FindAllStringSubmatch(page, -1) {
		if m[2] == "table" {
			names = append(names, strings.TrimSpace(m[3]))
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
