import { toModelSafeText } from '../../../../schemas/names.ts'

/** Matches words that do not identify a server. */
const genericWord = /^(?:mcp|server|www|api|com|org|net|io|dev|app|ai)$/

/** Returns a server name made of the identifying words of a text. @param fallback the name if the text has no words */
function nameOfWords (text: string, fallback: string): string {
  const words = toModelSafeText(text.toLowerCase()).split(/[-_]+/).filter((word) => word !== '')
  const identifying = words.filter((word) => !genericWord.test(word))
  const name = (identifying.length > 0 ? identifying : words).join('-').slice(0, 40).replace(/-+$/, '')
  return name === '' ? fallback : name
}

/** Returns a server name for an address: `notion` for `https://mcp.notion.com/mcp`. @param url an absolute URL */
export function serverNameFromUrl (url: string): string {
  const { hostname } = new URL(url)
  if (/^[\d.]+$|^\[/.test(hostname) || hostname === 'localhost') return 'local'
  const labels = hostname.split('.')
  const withoutTopLevel = labels.slice(0, Math.max(1, labels.length - 1))
  const label = withoutTopLevel.filter((each) => !genericWord.test(each)).at(-1) ?? labels[0] ?? ''
  return nameOfWords(label, 'server')
}

/** Matches options of package runners and of docker that take a value. */
const optionWithValue =
  /^(?:-p|--package|--from|--with|--python|-e|--env|-v|--volume|--mount|--name|--network|-w|--env-file)$/

/** Returns a server name for a command: `memory` for `npx -y @modelcontextprotocol/server-memory@1.2`. */
export function serverNameFromCommand (command: string, args: readonly string[]): string {
  const program = command.replace(/^.*[\\/]/, '').replace(/\.(?:cmd|exe|bat)$/i, '')
  const isRunner = /^(?:npx|bunx|uvx|pnpx|pnpm|yarn|npm|uv|pipx|docker|podman|node|bun|deno|python3?|cmd|bash|sh)$/
    .test(program)
  if (!isRunner) return nameOfWords(program, 'server')
  const subject = args.find((arg, at) => !arg.startsWith('-') && !/^\/[ck]$/i.test(arg) &&
    !/^(?:run|x|dlx|exec|tool|npx)$/.test(arg) && !optionWithValue.test(args[at - 1] ?? ''))
  if (subject === undefined) return nameOfWords(program, 'server')
  // The `@` before a version is in the last part of the path, unlike the `@` of a scope such as `@scope/name`.
  const version = subject.indexOf('@', Math.max(1, subject.lastIndexOf('/') + 1))
  const path = (version === -1 ? subject : subject.slice(0, version)).replace(/\.(?:[cm]?[jt]s|py)$/, '')
  const parts = path.split(/[\\/]/).filter((part) => !/^(?:index|main|server|dist|build|src|bin|\.{0,2})$/.test(part))
  return nameOfWords((parts.at(-1) ?? path).replace(/:[\w.-]+$/, ''), program)
}

/** Returns a server name for the title of an OpenAPI document. */
export const serverNameFromTitle = (title: unknown): string =>
  nameOfWords((typeof title === 'string' ? title : '').replace(/\bopenapi\b|\d+\.\d+/gi, ''), 'api')
