import type { Item } from '../../../protocol/lists.ts'
import { truncate } from '../../../protocol/text.ts'
import { ListResult, type PresentationInput, type Surface, type ItemTarget } from '../../gateway/index.ts'
import { runCallTool } from './call-tool.ts'
import { unknownToolHint, smartToolNames, createSmartTools } from './own-tools.ts'

/** Max length of the merged instructions of all servers, in characters; beyond that, they are truncated. */
const maxInstructions = 4_096

const shorten = (text: string): string =>
  text.length <= maxInstructions ? text : `${truncate(text, maxInstructions)}\n\n… (cut)`

/** The name of the provider of `search_tools` and `describe_tool`. No server's name begins with `$`. */
export const smartProviderName = '$smart'

/** Returns the servers that have tools on a surface, in the order of the surface. */
export function serversWithTools ({ parts: { tools } }: Surface): string[] {
  const servers = new Set<string>()
  for (const { provider } of tools.targets.values()) servers.add(provider)
  return [...servers]
}

/**
 * Returns a merged surface with the tools of `$smart` in place of its tools, and with long instructions truncated.
 * Prompts and resources stay the same.
 * @param isProgressive whether search results omit schemas, which `describe_tool` then returns
 */
export function toSmartSurface ({ merged, before }: PresentationInput, isProgressive: boolean): Surface {
  const items =
    createSmartTools(serversWithTools(merged), isProgressive).map((tool): Item =>
      ({ key: tool.name, text: JSON.stringify(tool) }))
  const list = new ListResult('tools', items.map(({ text }) => ({ text })), '{}')
  const old = before?.parts.tools.list
  const targets = new Map(items.map((item): [string, ItemTarget] => [item.key, {
    provider: smartProviderName,
    key: item.key,
    item,
    ...(item.key === smartToolNames.call && { redirect: runCallTool })
  }]))
  return {
    ...merged,
    parts: {
      ...merged.parts,
      tools: {
        list: old?.equals(list) === true ? old : list,
        targets,
        aliases: new Map(),
        hint: unknownToolHint
      }
    },
    announced: { ...merged.announced, tools: { listChanged: true } },
    // Long instructions are truncated, since `$smart` is used to save context.
    instructions: merged.instructions === undefined ? undefined : shorten(merged.instructions)
  }
}
