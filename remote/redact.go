package remote

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// redacted stands where a secret was.
const redacted = "REDACTED"

// secretName ends with what a name has whose value is a secret.
const secretName = `[\w.-]*(?:secret|token|passw(?:or)?d|passphrase|signature|credential|access[_-]?key(?:[_-]?id)?|account[_-]?key|api[_-]?key|shared[_-]?key|private[_-]?key|\bpwd|\bpass|_pwd|_pass|\bsas|_sas|\bsig|\bkey|\bauth|\bcode_verifier)`

// inSecretNames are strings one of which every match of secretName contains, in lower case.
var inSecretNames = []string{
	"secret", "token", "pass", "sig", "credential", "key", "pwd", "sas", "auth", "code_verifier",
}

// secret describes one kind of secrets in URLs, headers and the messages of SDKs. A text that contains
// none of the strings of needs, in lower case, has none: most texts have no secret, and the patterns are slow.
type secret struct {
	needs   []string
	pattern *regexp.Regexp
	with    string
}

var secrets = []secret{
	// user:password@ of a URL, also where the password was not escaped
	{[]string{"://"}, regexp.MustCompile(`(://)[^/?#\s"'@:]*:[^\s"']*@`), "${1}" + redacted + "@"},
	{[]string{"://"}, regexp.MustCompile(`(://)[^/?#\s"'@]*@`), "${1}" + redacted + "@"},
	{[]string{"%3a%2f%2f"}, regexp.MustCompile(`(?i)(%3A%2F%2F)[^&\s"']*%40`), "${1}" + redacted + "%40"},
	// elements of XML whose names say so
	{[]string{"<"}, regexp.MustCompile(
		`(?is)(<([\w:.-]*(?:secret|token|password|signature|credential|accesskeyid)[\w:.-]*)(?:\s[^<>]*)?>)[^<]*`),
		"${1}" + redacted},
	// an option whose name says that its value is a secret, in quotes or up to where it ends
	{inSecretNames, regexp.MustCompile(`(?i)(` + secretName + `\\?["']?\s*[=:]\s*\\?")(?:[^"\\]|\\[^"])*`), "${1}" + redacted},
	{inSecretNames, regexp.MustCompile(`(?i)(` + secretName + `["']?\s*[=:]\s*')[^']*`), "${1}" + redacted},
	{inSecretNames, regexp.MustCompile(`(?i)(` + secretName + `)(["']?\s*[=:]\s*)(?:(?:Bearer|Basic)\s+)?[^&\s"',;)}>]+`),
		"${1}${2}" + redacted},
	// Authorization headers
	{[]string{"authorization"}, regexp.MustCompile(`(?i)(authorization["']?\s*[=:]\s*["']?)(?:[\w-]+\s+)?[^\r\n"']+`), "${1}" + redacted},
	{[]string{"bearer"}, regexp.MustCompile(`(?i)\b(bearer\s+)[\w.~+/=-]{8,}`), "${1}" + redacted},
	// OAuth tokens of Google and GitHub, and signed tokens (JWT)
	{[]string{"ya29.", "1//0", "gh", "hf_"}, regexp.MustCompile(`\bya29\.[\w.-]+|\b1//0[\w-]{10,}|\bgh[pousr]_\w{16,}|\bgithub_pat_\w{16,}|\bhf_\w{16,}`),
		redacted},
	{[]string{"eyj"}, regexp.MustCompile(`\beyJ[\w-]{8,}\.[\w-]{4,}\.[\w-]*`), redacted},
	// private keys
	{[]string{"-----begin"}, regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`), redacted},
	// ids of AWS access keys
	{[]string{"akia", "asia"}, regexp.MustCompile(`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`), redacted},
}

// Redact returns text without the passwords, keys and signatures that it can be seen to have:
// user and password of URLs, options and headers whose names say so, ids of AWS keys. All that is
// printed, logged or stored goes through it.
func Redact(text string) string {
	lower := strings.ToLower(text)
	for _, s := range secrets {
		if s.possible(lower) {
			text = s.pattern.ReplaceAllString(text, s.with)
			lower = strings.ToLower(text)
		}
	}
	return text
}

// possible reports whether a text, which is given in lower case, may match. Beyond ASCII there are letters that
// match an s or a k in a pattern.
func (s secret) possible(lower string) bool {
	return slices.ContainsFunc(s.needs, func(word string) bool { return strings.Contains(lower, word) }) ||
		strings.ContainsFunc(lower, func(r rune) bool { return r >= utf8.RuneSelf })
}
