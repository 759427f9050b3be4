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
 * The name of the provider of `search_tools` and `describe_tool`. No name of a server, since those do not begin with
 * `$`.
 */
export const smartProviderName = '$smart'

/** The servers that have tools on a surface, in its order. */
export function serversOf ({ parts: { tools } }: Surface): string[] {
  const servers = new Set<string>()
  for (const { provider } of tools.targets.values()) servers.add(provider)
  return [...servers]
}

/**
 * A merged surface as `$smart` shows it: its prompts and resources are the same, its tools are those that find and call
 * the others.
 * @param progressive as `ownTools`
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
    // An agent's context is what this saves: of long instructions it gets the beginning.
    instructions: merged.instructions === undefined ? undefined : shorten(merged.instructions)
  }
}
