// Verifies an audio file: go run verify.go FILE, with TAKEMARK_URL and TAKEMARK_API_KEY in the environment.
//
// Prints the service's answer in one line. Exit codes: 0 accepted, 1 not accepted, 2 wrong use, 3 no answer, and 4
// where the credential holds and a person is to look at its evidence (go run itself ends with 1: build it first).
package main

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	attempts     = 5
	longestPause = 60
	longestBody  = 8 << 20
)

var errWrongUse = errors.New("wrong use")

type refused struct {
	status     int
	retryAfter string
	body       []byte
}

func (r *refused) Error() string { return fmt.Sprintf("refused with %d: %s", r.status, r.body) }

var client = &http.Client{
	Timeout: 5 * time.Minute,
	// A redirect would carry the key along.
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Keys and audio travel over TLS, or do not leave this machine. The name localhost is refused: it may mean ::1, where
// another user of this machine can listen.
func protected(address string) error {
	parts, err := url.Parse(address)
	if err != nil {
		return fmt.Errorf("%w: %v", errWrongUse, err)
	}
	host := parts.Hostname()
	loopback := net.ParseIP(host).IsLoopback()
	if (parts.Scheme == "https" && host != "") || (parts.Scheme == "http" && loopback) {
		return nil
	}
	return fmt.Errorf("%w: plain HTTP is for loopback addresses alone", errWrongUse)
}

func post(address string, headers map[string]string, body []byte) ([]byte, error) {
	if err := protected(address); err != nil {
		return nil, err
	}
	request, err := http.NewRequest(http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, longestBody))
	if err == nil && response.StatusCode/100 != 2 {
		err = &refused{response.StatusCode, response.Header.Get("Retry-After"), answer}
	}
	return answer, err
}

// Repeats a call that was refused for now, after the pause that the service asks for.
func retrying(call func() ([]byte, error)) ([]byte, error) {
	for attempt := 1; ; attempt++ {
		answer, err := call()
		var no *refused
		if !errors.As(err, &no) || (no.status != 429 && no.status != 503) {
			return answer, err
		}
		pause, notANumber := strconv.Atoi(no.retryAfter)
		if notANumber != nil || pause < 0 {
			pause = 1 << attempt
		}
		if attempt == attempts || pause > longestPause {
			return nil, err
		}
		time.Sleep(time.Duration(pause) * time.Second)
	}
}

func verify(base, key string, audio []byte) ([]byte, error) {
	var form bytes.Buffer
	writer := multipart.NewWriter(&form)
	file, _ := writer.CreateFormFile("file", "audio")
	file.Write(audio)
	writer.Close()
	attempt := make([]byte, 16)
	if _, err := rand.Read(attempt); err != nil {
		return nil, err
	}
	headers := map[string]string{
		"x-api-key":    key,
		"Content-Type": writer.FormDataContentType(),
		// All attempts have the same key, so the call is billed once.
		"Idempotency-Key": hex.EncodeToString(attempt),
	}
	return retrying(func() ([]byte, error) { return post(base+"/v1/verifications", headers, form.Bytes()) })
}

// A verdict or status that is not known today is not accepted.
func outcome(answer []byte) (int, error) {
	var result struct {
		Verdict  string `json:"verdict"`
		Good     bool   `json:"good"`
		Decision struct {
			Status string `json:"status"`
		} `json:"decision"`
	}
	if err := json.Unmarshal(answer, &result); err != nil {
		return 3, err
	}
	switch {
	case result.Verdict != "valid" || !result.Good:
		return 1, nil
	case result.Decision.Status == "verified_binding":
		return 0, nil
	case result.Decision.Status == "needs_review":
		return 4, nil
	}
	return 1, nil
}

func run() (int, error) {
	base, key := strings.TrimRight(os.Getenv("TAKEMARK_URL"), "/"), os.Getenv("TAKEMARK_API_KEY")
	if len(os.Args) != 2 || base == "" || key == "" {
		return 2, errors.New("usage: TAKEMARK_URL=... TAKEMARK_API_KEY=... verify FILE")
	}
	// An error for a header that cannot be sent could show the key.
	if strings.ContainsFunc(key, func(letter rune) bool { return letter < '!' || letter > '~' }) {
		return 2, errors.New("TAKEMARK_API_KEY must be printable ASCII without spaces or line breaks")
	}
	if err := protected(base); err != nil {
		return 2, err
	}
	audio, err := os.ReadFile(os.Args[1])
	if err != nil {
		return 2, err
	}
	answer, err := verify(base, key, audio)
	if err != nil {
		return 3, err
	}
	code, err := outcome(answer)
	if err == nil {
		var line bytes.Buffer
		json.Compact(&line, answer)
		fmt.Println(line.String())
	}
	return code, err
}

func main() {
	code, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}
