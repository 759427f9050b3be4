import { isObject, parseSmallMember, memberOf } from './json.ts'
import type { Catalogue, Item, ListKind } from './lists.ts'
import { memoized } from './memoized.ts'

/** The end of every skill's URI. */
const mainFile = '/SKILL.md'

/** Returns the URI of a skill's folder, without a trailing slash; undefined if the given URI is not a skill's. */
export const skillFolder = (uri: string): string | undefined =>
  uri.length > mainFile.length && uri.endsWith(mainFile) ? uri.slice(0, -mainFile.length) : undefined

/**
 * Returns the URIs of a skill's files: its `SKILL.md`, and the files in its manifest. Files outside the skill's folder
 * are ignored, since the extension forbids them. A skill with dynamic content has no manifest.
 */
export const skillFileUris = memoized(
  (skill: Item): readonly string[] => [...new Set([skill.key, ...manifestOf(skill)])]
)

function manifestOf ({ key, text }: Item): string[] {
  const folder = skillFolder(key)
  const manifest: unknown = JSON.parse(memberOf(text, 'resources') ?? '""')
  if (folder === undefined || !Array.isArray(manifest)) return []
  return manifest.flatMap((file: unknown) =>
    isObject(file) && typeof file.uri === 'string' && isIn(folder, file.uri) ? [file.uri] : [])
}

/** Matches path segments that may lead out of a folder. */
const dots = /(?:^|\/)(?:\.|%2e){1,2}(?:[/?#]|$)/i
const isIn = (folder: string, uri: string): boolean =>
  uri.startsWith(`${folder}/`) && !dots.test(uri.slice(folder.length + 1))

/** Reads the name and description of a skill from its frontmatter. @param text the skill, as JSON text */
export function skillFrontmatter (text: string): { name?: string, description?: string } {
  const frontmatter = memberOf(text, 'frontmatter') ?? ''
  if (!frontmatter.startsWith('{')) return {}
  const textOf = (name: string): string | undefined => {
    const value = parseSmallMember(frontmatter, name)
    return typeof value === 'string' ? value : undefined
  }
  const [name, description] = [textOf('name'), textOf('description')]
  return { ...(name !== undefined && { name }), ...(description !== undefined && { description }) }
}

/** Yields the keys of a server's items of a kind. The files of skills count as resources, even if not listed. */
export function * itemKeysWithSkillFiles ({ lists }: Pick<Catalogue, 'lists'>, kind: ListKind): Generator<string> {
  for (const { key } of lists[kind]) yield key
  if (kind === 'resources') for (const skill of lists.skills) yield * skillFileUris(skill)
}
