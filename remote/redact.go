package remote

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// redacted replaces a secret.
const redacted = "REDACTED"

// secretName matches the end of the name of an option or header whose value is a secret.
const secretName = `[\w.-]*(?:secret|token|passw(?:or)?d|passphrase|signature|credential|access[_-]?key(?:[_-]?id)?|account[_-]?key|api[_-]?key|shared[_-]?key|private[_-]?key|\bpwd|\bpass|_pwd|_pass|\bsas|_sas|\bsig|\bkey|\bauth|\bcode_verifier)`

// inSecretNames are lower-case strings, at least one of which is in every match of secretName.
var inSecretNames = []string{
	"secret", "token", "pass", "sig", "credential", "key", "pwd", "sas", "auth", "code_verifier",
}

// secret describes one kind of secrets in URLs, headers and the messages of SDKs. A text without any of the strings of
// needs, in lower case, cannot match: most texts have no secret, and the patterns are slow.
type secret struct {
	needs   []string
	pattern *regexp.Regexp
	with    string
}

var secrets = []secret{
	// user:password@ of a URL that is an option of another
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

// Redact returns text without the passwords, keys and signatures that it can recognize: user, password and options of
// URLs, options and headers whose names say so, ids of AWS keys. Everything that SDKs and servers say goes through
// Redact, as messages end up in logs and bug reports.
func Redact(text string) string {
	text = RedactURLs(text)
	lower := strings.ToLower(text)
	for _, s := range secrets {
		if s.possible(lower) {
			text = s.pattern.ReplaceAllString(text, s.with)
			lower = strings.ToLower(text)
		}
	}
	return text
}

// unquoted are the characters that end a URL in a text. [ParseURL] refuses them in a login and in options, since
// RedactURLs would stop at them and leave the rest of the secret.
const unquoted = " \t\r\n\"'<>`"

// login matches user:password@ in a URL, even if the password is not escaped. query matches the options after the ? of
// a URL.
var (
	login = regexp.MustCompile(`(://)(?:[^/?#\s"'@:]*:[^\s"']*|[^/?#\s"'@]*)@`)
	query = regexp.MustCompile(`(?i)\b([a-z][a-z0-9+.-]*)(://[^?` + unquoted + `]*\?)([^` + unquoted + `]+)`)
)

// open matches options of buckets that are no secrets. closing matches punctuation that may follow a URL in a sentence.
var (
	open = regexp.MustCompile(`^(?:region|endpoint|profile|anonymous|use_path_style|storage_account|domain|protocol|` +
		`localemu)=[\w.:/+-]*$`)
	closing = regexp.MustCompile(`[.,;:!?)\]}\\]*$`)
)

// RedactURLs returns text without the users, passwords and options of URLs, except for options of buckets that are no
// secrets, such as a region. Everything that is printed and may contain a URL goes through RedactURLs or [Redact].
func RedactURLs(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	text = login.ReplaceAllString(text, "${1}"+redacted+"@")
	return query.ReplaceAllStringFunc(text, func(found string) string {
		m := query.FindStringSubmatch(found)
		options, end := m[3], closing.FindString(m[3])
		options = strings.TrimSuffix(options, end)
		bucket := slices.Contains([]string{"s3", "gs", "azblob"}, strings.ToLower(m[1]))
		parts := strings.Split(options, "&")
		for i, part := range parts {
			if part != "" && !(bucket && open.MatchString(part)) {
				parts[i] = redacted
			}
		}
		return m[1] + m[2] + strings.Join(slices.Compact(parts), "&") + end
	})
}

// possible reports whether a text, given in lower case, may match. A text with letters beyond ASCII always may: some of
// them match an s or a k in a pattern that ignores case.
func (s secret) possible(lower string) bool {
	return slices.ContainsFunc(s.needs, func(word string) bool { return strings.Contains(lower, word) }) ||
		strings.ContainsFunc(lower, func(r rune) bool { return r >= utf8.RuneSelf })
}
