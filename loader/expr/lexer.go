package expr

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// kindOfToken says what a token is.
type kindOfToken int

const (
	end kindOfToken = iota
	number
	text
	name
	quotedName
	word   // and, or, not, in, between, true, false, nan, inf
	symbol // an operator or a bracket
)

// token is one word, symbol, number or text of an expression.
type token struct {
	kind kindOfToken
	text string // without quotes
	at   int    // byte
}

// is reports whether the token is the given word or symbol.
func (t token) is(s string) bool { return (t.kind == word || t.kind == symbol) && t.text == s }

// describe returns the token for an error message.
func (t token) describe() string {
	switch t.kind {
	case end:
		return "the end"
	case text:
		return "'" + strings.ReplaceAll(t.text, "'", "''") + "'"
	}
	return t.text
}

var words = map[string]bool{
	"and": true, "or": true, "not": true, "in": true, "between": true, "true": true, "false": true,
	"nan": true, "inf": true,
}

// symbols lists the symbols of the language, longer ones first so that "<=" is not read as "<". Some are symbols that
// people know from other languages, with the text to write instead.
var symbols = []struct{ text, instead string }{
	{"==", ""}, {"!=", ""}, {"<=", ""}, {">=", ""},
	{"<>", "!="}, {"&&", "and"}, {"||", "or"}, {"**", ""}, {"//", "/"},
	{"=", ""}, {"<", ""}, {">", ""}, {"+", ""}, {"-", ""},
	{"(", ""}, {")", ""}, {"[", ""}, {"]", ""}, {",", ""}, {":", ""},
	{"*", ""}, {"/", ""}, {"&", "and"}, {"|", "or"}, {"!", "not"}, {"~", "not"},
}

// tokens splits an expression into tokens, and appends an end.
func tokens(s string) (list []token, err error) {
	for at := 0; ; {
		at += len(s[at:]) - len(strings.TrimLeft(s[at:], " \t\r\n"))
		if at == len(s) {
			return append(list, token{end, "", at}), nil
		}
		t, n, err := next(s, at)
		if err != nil {
			return nil, err
		}
		list, at = append(list, t), at+n
	}
}

// next returns the token at a byte, and the length of its text.
func next(s string, at int) (token, int, error) {
	switch c := s[at]; {
	case c == '\'' || c == '"' || c == '`':
		return quoted(s, at)
	case c >= '0' && c <= '9' || c == '.':
		n := numeral(s[at:])
		return token{number, s[at : at+n], at}, n, nil
	}
	if n := identifier(s[at:]); n > 0 {
		t := token{name, s[at : at+n], at}
		if strings.HasPrefix(s[at+n:], ".") {
			return t, 0, failf(at+n, "'.' cannot stand here; names with such characters are written `in backticks`")
		}
		if lower := strings.ToLower(t.text); words[lower] && (t.text == lower || t.text == strings.ToUpper(lower)) {
			t.kind, t.text = word, lower
		}
		return t, n, nil
	}
	for _, sym := range symbols {
		if !strings.HasPrefix(s[at:], sym.text) {
			continue
		}
		if sym.instead != "" {
			return token{}, 0, failf(at, "%q is not an operator; write %s", sym.text, sym.instead)
		}
		t := token{symbol, sym.text, at}
		if sym.text == "==" {
			t.text = "="
		}
		return t, len(sym.text), nil
	}
	r, _ := utf8.DecodeRuneInString(s[at:])
	return token{}, 0, failf(at, "%q cannot stand here; names with such characters are written `in backticks`", r)
}

// quoted returns the quoted text or name at a byte. A doubled quote in it stands for a single quote.
func quoted(s string, at int) (token, int, error) {
	quote, kind := s[at], text
	if quote == '`' {
		kind = quotedName
	}
	var b strings.Builder
	for i := at + 1; i < len(s); i++ {
		switch {
		case s[i] != quote:
			b.WriteByte(s[i])
		case i+1 < len(s) && s[i+1] == quote:
			b.WriteByte(quote)
			i++
		default:
			return token{kind, b.String(), at}, i + 1 - at, nil
		}
	}
	return token{}, 0, failf(at, "the %c that opens a text here is not closed", quote)
}

// numeral returns the length of the number that s begins with. The number may be malformed, which
// numberNode reports.
func numeral(s string) int {
	for i := 1; i < len(s); i++ {
		c := s[i]
		sign := (c == '+' || c == '-') && (s[i-1] == 'e' || s[i-1] == 'E')
		if !sign && c != '.' && c != '_' && !unicode.IsLetter(rune(c)) && !unicode.IsDigit(rune(c)) {
			return i
		}
	}
	return len(s)
}

// identifier returns the length of the name that s begins with, or 0.
func identifier(s string) int {
	for i, r := range s {
		if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r)) {
			return i
		}
	}
	return len(s)
}
