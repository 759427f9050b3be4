import { skillFrontmatter } from '../../../protocol/skills.ts'
import { truncate } from '../../../protocol/text.ts'
import { loadOnce } from '../../base/config/index.ts'
import type { ListResult, Surface } from '../../gateway/index.ts'
import { ToolIndex, type SearchableTool } from './words/index.ts'

/** A found skill. A client reads its content from `uri`. */
export interface FoundSkill {
  readonly name: string
  readonly description: string
  readonly uri: string
  readonly serverName: string
  readonly score: number
}

/** Max number of skills in one result, and max length of each description, in characters. */
const bounds = { skills: 5, description: 500 }

interface SearchedSkill extends SearchableTool { readonly uri: string }

type Skills = Surface['parts']['skills']

/** The functions that return the search index of a list of skills; each creates the index at its first call. */
const indexes = new WeakMap<ListResult, () => Promise<ToolIndex>>()

async function createIndex ({ list, targets: targetMap }: Skills): Promise<ToolIndex> {
  const index = new ToolIndex()
  const targets = [...targetMap]
  await index.update(list.entries.flatMap(({ text, description: own }, at): SearchedSkill[] => {
    const [uri, target] = targets[at] ?? []
    const { name = '', description = '' } = skillFrontmatter(text)
    return uri === undefined || target === undefined
      ? []
      : [{ name, ownName: name, uri, server: target.provider, description: own ?? description }]
  }))
  return index
}

/** Returns the skills of a surface whose names or descriptions match the words of a query, best first. */
export async function findSkills (surface: Surface, query: string, limit: number): Promise<FoundSkill[]> {
  const { skills } = surface.parts
  const { list } = skills
  if (list.entries.length === 0 || query.trim() === '') return []
  const loadIndex = indexes.get(list) ?? loadOnce(async () => await createIndex(skills))
  indexes.set(list, loadIndex)
  return (await loadIndex()).search(query, Math.min(limit, bounds.skills)).map(({ tool, score }) => {
    const { name, description = '', uri, server } = tool as SearchedSkill
    return {
      name,
      description: truncate(description, bounds.description),
      uri,
      serverName: server,
      score: Math.round(score * 1_000) / 1_000
    }
  })
}
