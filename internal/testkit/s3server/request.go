package s3server

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// Put writes an object the way any other client would.
func (s *Server) Put(t testing.TB, key string, body []byte) {
	t.Helper()
	s.request(t, http.MethodPut, key, body)
}

// Remove deletes an object.
func (s *Server) Remove(t testing.TB, key string) {
	t.Helper()
	s.request(t, http.MethodDelete, key, nil)
}

// request sends one signed request (AWS Signature Version 4).
func (s *Server) request(t testing.TB, method, key string, body []byte) {
	t.Helper()
	path := "/" + s.Bucket + "/" + strings.NewReplacer("%2F", "/", "+", "%20").Replace(url.QueryEscape(key))
	req, err := http.NewRequest(method, s.Endpoint+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC()
	sum := sha256.Sum256(body)
	payload, stamp, day := hex.EncodeToString(sum[:]), now.Format("20060102T150405Z"), now.Format("20060102")
	req.Header.Set("X-Amz-Date", stamp)
	req.Header.Set("X-Amz-Content-Sha256", payload)
	const signed = "host;x-amz-content-sha256;x-amz-date"
	canonical := fmt.Sprintf("%s\n%s\n\nhost:%s\nx-amz-content-sha256:%s\nx-amz-date:%s\n\n%s\n%s", method, path, req.URL.Host, payload, stamp, signed, payload)
	scope := day + "/" + s.Region + "/s3/aws4_request"
	hash := sha256.Sum256([]byte(canonical))
	secret := []byte("AWS4" + s.Secret)
	for _, part := range []string{day, s.Region, "s3", "aws4_request", "AWS4-HMAC-SHA256\n" + stamp + "\n" + scope + "\n" + hex.EncodeToString(hash[:])} {
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(part))
		secret = mac.Sum(nil)
	}
	req.Header.Set("Authorization", fmt.Sprintf("AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%x", s.Access, scope, signed, secret))
	reply, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatalf("%s object %s: %v", method, key, err)
	}
	defer reply.Body.Close()
	if reply.StatusCode/100 != 2 {
		t.Fatalf("%s object %s: %s", method, key, reply.Status)
	}
}
