import { messageOf } from '../../../../db/errors.ts'
import { orderedEntries } from '../../../../db/order.ts'
import { rememberTextOrder } from '../../../../db/text-order.ts'
import { isObject } from '../../../../protocol/json.ts'
import { withoutAnyDuplicates } from '../../../../protocol/json-ambiguity.ts'
import { withoutBom } from '../../../../protocol/text.ts'
import { translateConfig } from '../../../../schemas/foreign-config.ts'
import { type EditorInput, readForeignDocument } from '../../../../schemas/foreign-document.ts'
import { textFormatOf, parseTomlOrYaml } from '../../../../schemas/foreign-text.ts'
import { inputVariableName } from '../../../../schemas/foreign-variables.ts'
import { jsoncToJson } from '../../../../schemas/jsonc.ts'
import { errors } from '../../../base/errors/index.ts'
import { managementLimits } from '../../limits.ts'
import { uniqueName } from '../../unique-name.ts'
import { commandLinesOf, splitCommandLine } from './command-line.ts'
import { parseClientCommand } from './client-command.ts'
import { serverNameFromUrl, serverNameFromCommand, serverNameFromTitle } from './names.ts'

type Config = Record<string, unknown>

/**
 * A server from a pasted text, with its config in the gateway's format. `remarks`: sentences about parts of the text
 * that have no effect, or another effect than in the client.
 */
interface PastedServer {
  readonly name: string
  readonly config: Config
  readonly remarks: readonly string[]
  /**
   * The values that the config requests with `${input:<id>}`, as in VS Code. In `config`, `${<key>}` stands in place of
   * `${input:<id>}`, and the console shows a field for each value.
   */
  readonly inputs: ReadonlyArray<{
    readonly key: string, readonly title: string, readonly isSecret: boolean, readonly fallback?: string
  }>
}

/** The depth down to which objects keep the order of their members, deep enough for the servers in clients' files. */
const orderedLevels = 4

/**
 * Detects the format of a text and reads its servers: the configuration file of a client, a server of such a file, an
 * OpenAPI document, or lines with an address, a command, or a client's command such as `claude mcp add`.
 * @throws InvalidInput
 */
export function parsePastedServers (text: string): PastedServer[] {
  const whole = withoutBom(text).trim()
  if (whole === '') throw new errors.InvalidInput('"text": paste a configuration, a command line or an address')
  const format = textFormatOf(whole)
  const found = format !== undefined
    ? ofValue(parse(format, () => parseTomlOrYaml(whole, format)), format)
    : jsonPattern.test(whole) ? ofJson(whole) : ofLines(whole)
  limitServers(found.length)
  const names = new Set<string>()
  return found.map(({ name, config: raw, remarks = [], asked = new Map<string, EditorInput>() }) => {
    const ids = new Set([...JSON.stringify(raw).matchAll(/\$\{input:([^{}"\\]{1,100})\}/g)].map(([, id = '']) => id))
    const inputs = [...ids].slice(0, maxInputs).map((id) => {
      const { description: title = id, isSecret = true, fallback } = asked.get(id) ?? {}
      return { id, key: inputVariableName(id), title, isSecret, ...fallback !== undefined && { fallback } }
    })
    const texts = Object.fromEntries(inputs.map(({ id, key }) => [id, `\${${key}}`]))
    const { config, warnings } = translateConfig(raw, { inputs: texts })
    return { name: uniqueName(names, name), config, remarks: [...remarks, ...warnings], inputs }
  })
}

/** Max number of values that one server may request with `${input:<id>}`. */
const maxInputs = 50

/** Matches the start of a JSON object or array, but not an IPv6 address in brackets. */
const jsonPattern = /^(?:\{|\[(?![\da-f:.]{2,45}\][:/]))/i

interface Found {
  readonly name: string
  readonly config: Config
  readonly remarks?: readonly string[]
  /** The descriptions of `${input:<id>}` in the member `inputs` of the text, by id. */
  readonly asked?: ReadonlyMap<string, EditorInput>
}

function ofJson (text: string): Found[] {
  const json = jsoncToJson(text)
  const value = rememberTextOrder(json, parse('JSON', () => JSON.parse(json) as unknown), orderedLevels)
  const [first, ...others] = ofValue(value, 'JSON')
  if (first === undefined || withoutAnyDuplicates(json) === json) return first ? [first, ...others] : []
  const remark = 'The text has two members of one name in an object, such as two servers: only the last one counts'
  return [{ ...first, remarks: [remark, ...first.remarks ?? []] }, ...others]
}

function ofValue (value: unknown, format: string): Found[] {
  // The `servers` of an OpenAPI document are addresses of the API, not MCP servers.
  if (isObject(value) && isDescription(value)) {
    const { title } = isObject(value.info) ? value.info : {}
    return [{ name: serverNameFromTitle(title), config: { type: 'openapi', openapi: { schema: value } } }]
  }
  const document = readForeignDocument(value, orderedEntries)
  if (document && document.servers.length > 0) {
    const asked = new Map(document.inputs.map((input) => [input.id, input]))
    return document.servers.map(({ name, config }) => {
      if (!isObject(config)) {
        throw new errors.InvalidInput(`"text": the server ${JSON.stringify(name)} is not an object`)
      }
      return { name: name === '' ? nameOf(config) : name, config, asked }
    })
  }
  if (isObject(value)) {
    if (isServer(value)) {
      const { name, ...config } = value
      return [{ name: typeof name === 'string' ? name : nameOf(config), config }]
    }
    const servers = orderedEntries(value)
      .flatMap(([name, config]): Found[] => isObject(config) && isServer(config) ? [{ name, config }] : [])
    if (servers.length > 0) return servers
  }
  if (document) throw new errors.InvalidInput(`"text": there are no servers in this ${format}`)
  throw new errors.InvalidInput(`"text": this ${format} contains no servers: neither "mcpServers" nor "servers", ` +
    'no "command", no "url", and it is not an OpenAPI document')
}

/** Calls a parser. @throws InvalidInput that names the format, in place of any error of the parser */
function parse (format: string, read: () => unknown): unknown {
  try {
    return read()
  } catch (error) {
    throw new errors.InvalidInput(`"text": this is not ${format}: ${messageOf(error)}`)
  }
}

const isDescription = (value: Config): boolean =>
  isObject(value.paths) && (typeof value.openapi === 'string' || typeof value.swagger === 'string')

const isServer = (value: Config): boolean =>
  ['command', 'url', 'httpUrl', 'serverUrl'].some((member) => typeof value[member] === 'string' ||
    Array.isArray(value[member])) || (value.type === 'openapi' && isObject(value.openapi))

function ofLines (text: string): Found[] {
  const lines = commandLinesOf(text)
  limitServers(lines.length)
  return lines.map((line) => {
    if (/^https?:\/\/\S+$/i.test(line)) return ofAddress(line)
    const url = withScheme(line)
    if (url !== undefined) {
      const remark = `This was treated as an address, ${url}. For a command with this name, write ./${line}`
      return { ...ofAddress(url), remarks: [remark] }
    }
    try {
      const words = splitCommandLine(line)
      return parseClientCommand(words) ?? ofCommand(words)
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error
      throw new errors.InvalidInput(`"text": ${JSON.stringify(line.slice(0, 60))}: ${error.message}`)
    }
  })
}

/** Matches file extensions of programs. They are not taken for top-level domains, although some of them are. */
const programSuffix = /\.(?:sh|py|rb|pl|php|js|mjs|cjs|ts|mts|jar|exe|cmd|bat|ps1|bin|so|go|rs)$/i

/**
 * Returns the URL for an address without a scheme, such as `127.0.0.1:9000/mcp` or `mcp.example.com/mcp`; undefined for
 * any other text. The scheme is http for IP addresses and names in local networks, otherwise https.
 */
function withScheme (line: string): string | undefined {
  const [, host = '', port, path] =
    /^(\[[\da-f:.]{2,45}\]|[a-z\d](?:[a-z\d.-]{0,252}[a-z\d])?)(:\d{1,5})?([/?]\S*)?$/i.exec(line) ?? []
  const isNumeric = /^\[|^\d{1,3}(?:\.\d{1,3}){3}$/.test(host)
  const isNamed = host === 'localhost' || /\.[a-z][a-z-]*[a-z]$/i.test(host)
  // A single name with a port is a host in a local network, such as a container.
  const isAddress = isNumeric || (isNamed && !programSuffix.test(host)) || (/^[a-z]/i.test(host) && port !== undefined)
  if (!isAddress || (host === 'localhost' && port === undefined && path === undefined)) return undefined
  const isLocal = isNumeric || !host.includes('.') || /\.(?:local|localhost|lan|internal)$/i.test(host)
  const url = `${isLocal ? 'http' : 'https'}://${line}`
  return URL.canParse(url) ? url : undefined
}

function ofAddress (url: string): Found {
  if (!URL.canParse(url)) throw new errors.InvalidInput(`"text": ${JSON.stringify(url)} is not an address`)
  const { pathname } = new URL(url)
  const isDescribed = /\.(?:json|ya?ml)$|\/(?:openapi|swagger|api-docs)(?:\/|$)/i.test(pathname)
  return {
    name: serverNameFromUrl(url),
    config: isDescribed
      ? { type: 'openapi', openapi: { url } }
      : { ...pathname.endsWith('/sse') && { type: 'sse' }, url }
  }
}

/** Reads a server from a command line: variable assignments, then a command with its arguments. */
function ofCommand (words: readonly string[]): Found {
  const start = words.findIndex((word) => !/^[A-Za-z_]\w*=/.test(word))
  const [command, ...args] = start === -1 ? [] : words.slice(start)
  if (command === undefined) throw new SyntaxError('it contains no command')
  const env = Object.fromEntries(words.slice(0, start).map((word) => {
    const at = word.indexOf('=')
    return [word.slice(0, at), word.slice(at + 1)]
  }))
  return {
    name: serverNameFromCommand(command, args),
    config: { command, args, ...start > 0 && { env } }
  }
}

function nameOf ({ command, args, url }: Config): string {
  if (typeof url === 'string' && URL.canParse(url)) return serverNameFromUrl(url)
  return typeof command === 'string'
    ? serverNameFromCommand(command, Array.isArray(args) ? args.map(String) : [])
    : 'server'
}

function limitServers (count: number): void {
  const max = managementLimits.console.pastedServers
  if (count > max) throw new errors.InvalidInput(`"text": it contains ${count} servers: paste at most ${max} at once`)
}
