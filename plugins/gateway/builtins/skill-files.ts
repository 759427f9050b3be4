import { hash } from 'node:crypto'
import { isUtf8 } from 'node:buffer'
import type { BuiltInSkill } from '../../../schemas/skills.ts'
import { isObject } from '../../../protocol/json.ts'
import { withoutBom } from '../../../protocol/text.ts'
import { errors } from '../../base/errors/index.ts'
import { gatewayLimits } from '../limits.ts'

/** The file that every skill has. */
export const skillMainFile = 'SKILL.md'

/** The URI of a file of a built-in skill. The URI of `SKILL.md` identifies the skill. @param path in the folder */
export const skillUri = (name: string, path = skillMainFile): string =>
  `skill://${name}/${path.split('/').map(encodeURIComponent).join('/')}`

/** The URIs of all files of a built-in skill. */
export const skillUris = ({ name, files }: Pick<BuiltInSkill, 'name' | 'files'>): string[] =>
  Object.keys(files).map((path) => skillUri(name, path))

/** The size and digest with which clients verify a file. @param base64 its content */
export function fileDigestAndSize (base64: string): { digest: string, size: number } {
  const bytes = Buffer.from(base64, 'base64')
  return { digest: `sha256:${hash('sha256', bytes, 'hex')}`, size: bytes.length }
}

const mimeTypes: Readonly<Record<string, string>> = {
  md: 'text/markdown',
  json: 'application/json',
  html: 'text/html',
  csv: 'text/csv',
  png: 'image/png',
  jpg: 'image/jpeg',
  svg: 'image/svg+xml',
  pdf: 'application/pdf'
}

/** The result of `resources/read` for a file: text if it is UTF-8, otherwise base64. */
export function toReadResourceResult (uri: string, path: string, base64: string): object {
  const bytes = Buffer.from(base64, 'base64')
  const isText = isUtf8(bytes)
  const mimeType = mimeTypes[/\.([a-z0-9]+)$/i.exec(path)?.[1]?.toLowerCase() ?? ''] ??
    (isText ? 'text/plain' : 'application/octet-stream')
  return { contents: [{ uri, mimeType, ...(isText ? { text: bytes.toString() } : { blob: base64 }) }] }
}

const refuse = (sentence: string): never => { throw new errors.InvalidInput(sentence) }

/**
 * Checks the files of a skill, and reads its name and frontmatter from `SKILL.md`.
 * @param files the contents in base64, by path
 * @throws InvalidInput
 */
export async function parseSkillFiles (
  files: Readonly<Record<string, string>>
): Promise<Pick<BuiltInSkill, 'name' | 'frontmatter' | 'files'>> {
  const { skillFiles: most, name: longest } = gatewayLimits.builtIns
  const paths = Object.keys(files)
  if (paths.length > most) refuse(`A skill must have at most ${most} files`)
  for (const path of paths) {
    if (!isPlainPath(path)) refuse(`"files": ${JSON.stringify(path.slice(0, 100))} is not the path of a file`)
    if (!isBase64(files[path] ?? '')) refuse(`"files": the content of ${JSON.stringify(path)} must be base64`)
  }
  const frontmatter = await frontmatterOf(files[skillMainFile] ?? refuse(`A skill must have a file ${skillMainFile}`))
  const { name, description } = frontmatter
  if (typeof name !== 'string' || name.length > longest || !/^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(name)) {
    return refuse(
      `The name in ${skillMainFile} must have 1 to ${longest} lower-case letters, digits and single hyphens`
    )
  }
  if (typeof description !== 'string' || description.trim() === '' || description.length > 1_024) {
    return refuse(`The description in ${skillMainFile} must have 1 to 1024 characters`)
  }
  return { name, frontmatter, files }
}

/** Parses the YAML at the start of a `SKILL.md`. @throws InvalidInput */
async function frontmatterOf (base64: string): Promise<Record<string, unknown>> {
  const bytes = Buffer.from(base64, 'base64')
  if (!isUtf8(bytes)) refuse(`${skillMainFile} must be UTF-8`)
  if (bytes.length > gatewayLimits.builtIns.text) {
    refuse(`${skillMainFile} must have at most ${gatewayLimits.builtIns.text} bytes`)
  }
  const [, yaml] = /^---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|$)/s.exec(withoutBom(bytes.toString())) ?? []
  if (yaml === undefined) return refuse(`${skillMainFile} must begin with frontmatter between two lines "---"`)
  const { parseTomlOrYaml: parseText } = await import('../../../schemas/foreign-text.ts')
  try {
    const value = parseText(yaml, 'YAML')
    if (isObject(value)) return JSON.parse(JSON.stringify(value)) as Record<string, unknown>
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    refuse(`The frontmatter of ${skillMainFile} is not valid YAML: ${error.message}`)
  }
  return refuse(`The frontmatter of ${skillMainFile} must be a mapping`)
}

// A pattern with a repeated group would overflow V8's stack for a file of several megabytes.
const isBase64 = (text: string): boolean => text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text)

const isPlainPath = (path: string): boolean =>
  path.length <= 1_024 && !/[\p{Cc}\p{Cs}\\]/u.test(path) &&
  path.split('/').every((part) => part !== '' && part !== '.' && part !== '..')
