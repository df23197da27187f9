package discord

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
)

// dialThroughProxy connects to addr, through the proxy that the environment names for https, if it names one.
func dialThroughProxy(ctx context.Context, network, addr string) (net.Conn, error) {
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: &url.URL{Scheme: "https", Host: addr}})
	if err != nil {
		return nil, err
	}
	if proxy == nil {
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}
	if proxy.Scheme != "http" {
		return nil, fmt.Errorf("a proxy of type %q cannot be used", proxy.Scheme)
	}
	at := proxy.Host
	if proxy.Port() == "" {
		at = net.JoinHostPort(proxy.Hostname(), "80")
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, network, at)
	if err != nil {
		return nil, err
	}
	if err := connect(ctx, conn, proxy.User, addr); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// connect asks a proxy to lead on to addr.
func connect(ctx context.Context, conn net.Conn, user *url.Userinfo, addr string) error {
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	req := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: addr}, Host: addr, Header: http.Header{}}
	if user != nil {
		password, _ := user.Password()
		req.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password)))
	}
	if err := req.Write(conn); err != nil {
		return err
	}
	answer := bufio.NewReader(conn)
	resp, err := http.ReadResponse(answer, req)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the proxy does not lead on: %s", resp.Status)
	}
	if answer.Buffered() > 0 {
		return errors.New("the proxy said more than it was asked")
	}
	return nil
}
