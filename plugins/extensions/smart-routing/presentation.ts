import type { Item } from '../../../protocol/lists.ts'
import { truncate } from '../../../protocol/text.ts'
import { ListResult, type PresentationInput, type Surface, type Target } from '../../gateway/index.ts'
import { callInstead } from './call-tool.ts'
import { hint, names, ownTools } from './own-tools.ts'

/** Max length of the instructions of all servers together, in characters. */
const mostInstructions = 4_096

const shorten = (text: string): string =>
  text.length <= mostInstructions ? text : `${truncate(text, mostInstructions)}\n\n… (cut)`

/**
 * The name of the provider of `search_tools` and `describe_tool`. It cannot be the name of a server, which never begins
 * with `$`.
 */
export const smartProviderName = '$smart'

/** The servers that have tools on a surface, in the order of the surface. */
export function serversOf ({ parts: { tools } }: Surface): string[] {
  const servers = new Set<string>()
  for (const { provider } of tools.targets.values()) servers.add(provider)
  return [...servers]
}

/**
 * The `$smart` form of a merged surface: the same prompts and resources, and the tools that search and call the others.
 * @param progressive as for `ownTools`
 */
export function presentBySearch ({ merged, before }: PresentationInput, progressive: boolean): Surface {
  const items =
    ownTools(serversOf(merged), progressive).map((tool): Item => ({ key: tool.name, text: JSON.stringify(tool) }))
  const list = new ListResult('tools', items.map(({ text }) => ({ text })), '{}')
  const old = before?.parts.tools.list
  const targets = new Map(items.map((item): [string, Target] => [item.key, {
    provider: smartProviderName,
    key: item.key,
    item,
    ...(item.key === names.call && { redirect: callInstead })
  }]))
  return {
    ...merged,
    parts: {
      ...merged.parts, tools: { list: old?.equals(list) === true ? old : list, targets, aliases: new Map(), hint }
    },
    announced: { ...merged.announced, tools: { listChanged: true } },
    // `$smart` exists to save context, so long instructions are cut.
    instructions: merged.instructions === undefined ? undefined : shorten(merged.instructions)
  }
}
