import { existsSync } from 'node:fs'
import { delimiter, resolve } from 'node:path'
import { messageOf } from '../../db/errors.ts'
import { isObject } from '../../protocol/json.ts'
import { withoutBom } from '../../protocol/text.ts'
import type { CommandRun } from '../context.ts'
import { exitCodes, CommandError } from '../errors.ts'
import type { Environment } from '../io.ts'

/** The options of the command `add`. */
export interface AddOptions {
  type?: string
  env: string[]
  header: string[]
  configJson?: string
  visibility?: string
  disabled?: true
  test?: true
  wait?: true
}

/** Collects the values of a repeatable option, as a parser for commander. @param former the values collected so far */
export const collectOption = (value: string, former: readonly string[]): string[] => [...former, value]

/**
 * Returns the config that the arguments and options of the command `add` describe.
 * @param name the name of the server to add, for messages
 * @param target the address, or the command with its arguments
 * @throws CommandError
 */
export function configFromArguments (
  { argv, env: environment, cwd }: CommandRun,
  name: string,
  target: string[],
  options: AddOptions
): Record<string, unknown> {
  const [first, ...rest] = target
  const { type, visibility, disabled, configJson } = options
  const more = {
    ...(type === undefined ? {} : { type }),
    ...(visibility === undefined ? {} : { visibility }),
    ...(disabled ? { enabled: false } : {})
  }
  const base = configJson === undefined ? {} : parseJsonArgument(configJson, '--config-json')
  if (!isObject(base)) throw new CommandError('--config-json: expected an object', exitCodes.usage)
  if (first === undefined) {
    if (configJson !== undefined) return withPairs({ ...base, ...more }, options)
    throw new CommandError('Give an address, or a command after two dashes: add files -- npx -y …', exitCodes.usage)
  }
  const isUrl = isHttpAddress(first)
  if (isUrl && rest.length > 0) throw new CommandError('An address has no arguments', exitCodes.usage)
  if (type !== 'stdio' && !isBehindDashes(target, argv) && isMistypedAddress(first, environment, cwd)) {
    throw new CommandError(mistypedAddressMessage(name, first), exitCodes.usage)
  }
  const conflicting = (isUrl ? ['command', 'args'] : ['url']).find((member) => base[member] !== undefined)
  if (conflicting !== undefined) {
    const kind = isUrl ? 'an address' : 'a command'
    throw new CommandError(
      `--config-json has ${JSON.stringify(conflicting)}, but the target is ${kind}: omit one of them`, exitCodes.usage
    )
  }
  return withPairs({ ...base, ...(isUrl ? { url: first } : { command: first, args: rest }), ...more }, options)
}

/** Returns a config with the variables and headers of `--env` and `--header` added. @throws CommandError */
export function withPairs (
  config: Record<string, unknown>, { env, header }: Pick<AddOptions, 'env' | 'header'>
): Record<string, unknown> {
  const merged = (member: 'env' | 'headers', given: Record<string, string>): Record<string, unknown> =>
    Object.keys(given).length === 0 ? {} : { [member]: { ...isObject(config[member]) ? config[member] : {}, ...given } }
  return {
    ...config,
    ...merged('env', parsePairs(env, /^([^=]+)=(.*)$/s, '--env', 'NAME=value')),
    ...merged('headers', parsePairs(header, /^([^:\s]+):\s*(.*)$/s, '--header', 'Name: value'))
  }
}

/** Whether the whole target follows `--` in the arguments of the process, which commander does not report. */
function isBehindDashes (target: readonly string[], argv: readonly string[]): boolean {
  const at = argv.indexOf('--')
  return at >= 0 && argv.length - at - 1 >= target.length
}

/**
 * Parses the values of a repeatable option, such as `NAME=value`, into an object.
 * @param pattern matches one value; its first group is the name, its second group the value of the member
 * @param option the option, for error messages
 * @param shape the expected syntax, for error messages
 * @throws CommandError
 */
export function parsePairs (
  texts: readonly string[], pattern: RegExp, option: string, shape: string
): Record<string, string> {
  return Object.fromEntries(texts.map((text) => {
    const [, name, value] = pattern.exec(text) ?? []
    if (name === undefined || value === undefined) {
      throw new CommandError(`${option}: expected ${shape}`, exitCodes.usage)
    }
    return [name, value]
  }))
}

/** Parses JSON text. @param place where the text comes from, for the error message @throws CommandError */
export function parseJsonArgument (text: string, place: string): unknown {
  try {
    return JSON.parse(withoutBom(text))
  } catch (error) {
    throw new CommandError(`${place} is not JSON: ${messageOf(error)}`, exitCodes.usage)
  }
}

/** Whether a text begins with `http://` or `https://`, so that it is the URL of a remote server and not a command. */
const isHttpAddress = (text: string): boolean => /^https?:\/\//i.test(text)

/** Whether a text begins with a URL scheme, as `ftp://…` and `https:/…` do. `C:/…` is a Windows path, not a URL. */
const hasScheme = (text: string): boolean => /^[a-z][a-z0-9+.-]+:\//i.test(text)

/**
 * Whether a text looks like a URL without a scheme: a host with a port (`hub:8080`); or a path that follows
 * `localhost`, an IP address or a name with a dot (`example.com/mcp`).
 */
const hasHost = (text: string): boolean => {
  const [, host = '', port, path] =
    /^(\[[0-9a-f:.]+\]|[a-z0-9_-]+(?:\.[a-z0-9_-]+)*)(:\d{1,5})?([/?#].*)?$/is.exec(text) ?? []
  return port !== undefined || (path !== undefined && /[.[]|^localhost$/i.test(host))
}

/** Whether a command exists: it is the path of a file, or the name of a file in a folder of PATH. */
const isFound = (command: string, environment: Environment, cwd: string): boolean =>
  existsSync(resolve(cwd, command)) ||
    (!command.includes('/') && (environment.PATH ?? '').split(delimiter).some((folder) =>
      folder !== '' && existsSync(resolve(cwd, folder, command))))

/**
 * Whether a text looks like an invalid address rather than like a command: it has a scheme other than `http://` and
 * `https://`, or a host but no scheme, and there is no command of this name.
 */
export const isMistypedAddress = (text: string, environment: Environment, cwd = '.'): boolean =>
  !isHttpAddress(text) && (hasScheme(text) || hasHost(text)) && !isFound(text, environment, cwd)

/**
 * Returns the error message for a mistyped address, which suggests corrections.
 * @param name the name of the server to add
 * @param text the mistyped address
 */
export function mistypedAddressMessage (name: string, text: string): string {
  // The address may contain a password or a key.
  const shown = text.replace(/:(\/+)[^/?#]*@/, ':$1…@').replace(/[?#].*$/s, '')
  const rest = shown.replace(/^[a-z][a-z0-9+.-]+:\/+/i, '')
  return `${JSON.stringify(shown)} looks like an address, but does not begin with http:// or https://. Write ` +
    `http://${rest} or https://${rest}; for a command of this name, put two dashes before it: add ${name} -- ${shown}`
}
