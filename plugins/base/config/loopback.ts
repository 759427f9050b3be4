import { isIPv4 } from 'node:net'

/** Whether a host name or address is a loopback one; an IPv6 address with or without brackets. */
export const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || host === '[::1]' || (isIPv4(host) && host.startsWith('127.'))
