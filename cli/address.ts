import { existsSync } from 'node:fs'
import { delimiter, resolve } from 'node:path'
import type { Environment } from './io.ts'

/** Whether a text is an address that a server is reached at. */
export const isHttpAddress = (text: string): boolean => /^https?:\/\//i.test(text)

/** `ftp://…`, and `https:/…`; no path of Windows, whose drive is one letter. */
const hasScheme = (text: string): boolean => /^[a-z][a-z0-9+.-]+:\//i.test(text)

/** A host with a port, or `localhost`, an IP address or a name with a dot in front of a path. */
const hasHost = (text: string): boolean => {
  const [, host = '', port, path] = /^(\[[0-9a-f:.]+\]|[a-z0-9_-]+(?:\.[a-z0-9_-]+)*)(:\d{1,5})?([/?#].*)?$/is.exec(text) ?? []
  return port !== undefined || (path !== undefined && /[.[]|^localhost$/i.test(host))
}

/** Whether a file has this path, or a folder of PATH has a file of this name. */
const isFound = (command: string, environment: Environment, cwd: string): boolean =>
  existsSync(resolve(cwd, command)) || (!command.includes('/') && (environment.PATH ?? '').split(delimiter).some((folder) =>
    folder !== '' && existsSync(resolve(cwd, folder, command))))

/**
 * Whether a text that would be taken for a command is meant as an address: with another scheme than http or https, or with a host and no
 * scheme, where no such command is found.
 */
export const isMistypedAddress = (text: string, environment: Environment, cwd = '.'): boolean =>
  !isHttpAddress(text) && (hasScheme(text) || hasHost(text)) && !isFound(text, environment, cwd)

/** The error message for a mistyped address, with the correct forms. @param name of the server to add */
export function mistypedAddress (name: string, text: string): string {
  // It may hold a password or a key.
  const shown = text.replace(/:(\/+)[^/?#]*@/, ':$1…@').replace(/[?#].*$/s, '')
  const rest = shown.replace(/^[a-z][a-z0-9+.-]+:\/+/i, '')
  return `${JSON.stringify(shown)} looks like an address, and begins with neither http:// nor https://. ` +
    `Write http://${rest} or https://${rest}; for a command of this name, put two dashes before it: add ${name} -- ${shown}`
}
