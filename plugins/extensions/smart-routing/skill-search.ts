import { skillFrontmatter } from '../../../protocol/skills.ts'
import { truncate } from '../../../protocol/text.ts'
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

/** The search index of each list of skills, created by the first search in the list. */
const indexes = new WeakMap<ListResult, Promise<ToolIndex>>()

async function makeIndex ({ parts: { skills } }: Surface): Promise<ToolIndex> {
  const index = new ToolIndex()
  const targets = [...skills.targets]
  await index.update(skills.list.entries.flatMap(({ text, description: own }, at): SearchedSkill[] => {
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
  const { list } = surface.parts.skills
  if (list.entries.length === 0 || query.trim() === '') return []
  const index = await (indexes.get(list) ?? remember(list, makeIndex(surface)))
  return index.search(query, Math.min(limit, bounds.skills)).map(({ tool, score }) => {
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

function remember (list: ListResult, index: Promise<ToolIndex>): Promise<ToolIndex> {
  indexes.set(list, index)
  return index
}
