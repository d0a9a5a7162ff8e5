// Package apiclient has package kubeapi's rules for requests to an API server: addresses are
// checked, redirects stay within the server's origin, and errors show no value that a request
// carried.
package apiclient

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
)

// Client sends requests to one server. New makes one. Its methods may be called concurrently.
type Client struct {
	client    http.Client
	userAgent string
	authorize func(*http.Request) error
}

// New returns a client. It copies base, of which nil means the zero value; userAgent may be empty
// and authorize nil. Without a Transport it uses http.DefaultTransport's settings, with a check of
// idle HTTP/2 connections.
func New(base *http.Client, userAgent string, authorize func(*http.Request) error) *Client {
	c := &Client{userAgent: cmp.Or(userAgent, defaultUserAgent()), authorize: authorize}
	if base != nil {
		c.client = *base
	}
	c.client.Transport = redirectValidator{c.client.Transport}
	c.client.CheckRedirect = sameOrigin(c.client.CheckRedirect)
	return c
}

// Prepare completes the headers of a request and authorizes it. The request's context must be one
// of Recorded.
func (c *Client) Prepare(request *http.Request) error {
	request.Header.Set("User-Agent", c.userAgent)
	if c.authorize != nil {
		if err := c.authorize(request); err != nil {
			return fmt.Errorf("%w: %w", ErrAuthorize, err)
		}
	}
	sentFromContext(request.Context()).Request(request)
	return nil
}

// Do sends a prepared request. Its error has neither the verb nor the URL, in whose query
// net/http's error shows selectors and tokens. Secrets.CleanError makes it safe to print.
func (c *Client) Do(request *http.Request) (*http.Response, error) {
	response, err := c.client.Do(request)
	if err == nil {
		sentFromContext(request.Context()).Request(response.Request) // as sent by the transport
	}
	// Unwrap only the outermost one: an inner *url.Error may come from a transport.
	if outer, ok := err.(*url.Error); ok {
		err = outer.Err
	}
	return response, err
}

// CloseIdleConnections closes the connections of the client's transport that no request uses.
func (c *Client) CloseIdleConnections() { c.client.CloseIdleConnections() }
