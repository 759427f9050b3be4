/** Values of variables that an editor fills in when it starts a server. */
export interface EditorVariables {
  /** The user's answers to the `inputs` of VS Code, by their ids. */
  readonly inputs?: Readonly<Record<string, string>>
  /** `${userHome}`, `${workspaceFolder}` and similar variables. */
  readonly editor?: Readonly<Record<string, string>>
}

/** The names of variables that only an editor can fill in. */
const editorNames = new Set([
  'userHome', 'workspaceFolder', 'workspaceFolderBasename', 'workspaceRoot', 'pathSeparator', '/', 'cwd',
  'CLAUDE_PLUGIN_ROOT'
])

/** Returns the name of the environment variable that replaces an input of VS Code: `API_KEY` for `api-key`. */
export const inputVariableName = (id: string): string =>
  id.replace(/[^A-Za-z0-9]+/g, '_').replace(/^(?=[0-9])/, '_').toUpperCase()

/** Matches `${…}` in the notation of any program. Group 1 is the text within the braces. */
export const anyVariablePattern = /\$\{([^{}]*)\}/g

/** Max number of passes over a text: a value that is filled in may complete another variable (`${input:a}{B}`). */
const maxRounds = 4

/**
 * Converts the variables of other programs in a text to the gateway's notation: `${NAME}` for a variable of the
 * gateway's environment. The conversion is idempotent, so that a text that a client sends back does not change again. A
 * text that needs more than `maxRounds` passes is returned unchanged.
 * @param place the path of the member that contains the text
 */
export function translateVariables (
  text: string, place: string, variables: EditorVariables, warn: (sentence: string) => void
): string {
  const warnings = new Set<string>()
  let filled = translateContinue(translateCopilot(translateOpencode(text, place, warn), place))
  for (let round = 0; round < maxRounds; round++) {
    const next = fillOnce(filled, place, variables, (sentence) => { warnings.add(sentence) })
    if (next === filled) {
      for (const sentence of warnings) warn(sentence)
      return filled
    }
    filled = next
  }
  warn(`"${place}" has nested variables, which are not expanded: write the value`)
  return text
}

/** Converts opencode's `{env:NAME}`. For `{file:path}`, it only warns. */
const translateOpencode = (text: string, place: string, warn: (sentence: string) => void): string =>
  text.replace(/(?<!\$)\{(env|file):([^{}]*)\}/g, (written, kind: string, name: string) => {
    if (kind === 'env') return `\${env:${name}}`
    warn(`"${place}" has the content of a file, which is not read: write the value`)
    return written
  })

/**
 * Converts variables of the GitHub Copilot coding agent: `$COPILOT_MCP_NAME`, in `env` also without the dollar sign,
 * refers to a secret of the repository.
 */
const translateCopilot = (text: string, place: string): string =>
  place.startsWith('env.') && /^COPILOT_MCP_\w+$/.test(text)
    ? `\${${text}}`
    : text.replace(/\$(COPILOT_MCP_\w+)/g, (_, name: string) => `\${${name}}`)

/** Converts `${{ secrets.NAME }}` of Continue. */
const translateContinue = (text: string): string =>
  text.replace(/\$\{\{\s*secrets\.(\w+)\s*\}\}/g, (_, name: string) => `\${${name}}`)

function fillOnce (
  text: string, place: string, { inputs = {}, editor = {} }: EditorVariables, warn: (sentence: string) => void
): string {
  return text.replace(anyVariablePattern, (written, inner: string) => {
    const [, kind, name = ''] = /^(env|input|cmd|command|config):\s*(.*)$/s.exec(inner) ?? []
    if (kind === 'env') return takeDefault(name, place, warn) ?? `\${${name}}`
    if (kind === 'input') {
      if (Object.hasOwn(inputs, name)) return inputs[name] ?? ''
      const variable = inputVariableName(name)
      warn(`"${place}" uses the input ${JSON.stringify(name)}: the value comes from ${variable} in the gateway's ` +
        'environment')
      return `\${${variable}}`
    }
    if (kind !== undefined) {
      warn(`"${place}" has a variable of kind "${kind}", which is not expanded: write the value`)
      return written
    }
    if (editorNames.has(inner)) {
      if (Object.hasOwn(editor, inner)) return editor[inner] ?? ''
      warn(`"${place}" has $\{${inner}}, which only an editor can expand: write the value`)
      return written
    }
    return takeDefault(inner, place, warn) ?? written
  })
}

/**
 * Returns the default of a variable (`${NAME:-default}`) in `command` and `cwd`, where the gateway expands no
 * variables; undefined in other members, and if the variable has no default.
 */
function takeDefault (inner: string, place: string, warn: (sentence: string) => void): string | undefined {
  const [, name, fallback] = /^([A-Za-z_]\w*):-(.*)$/s.exec(inner) ?? []
  if (name === undefined || fallback === undefined || (place !== 'command' && place !== 'cwd')) return undefined
  warn(`"${place}" uses the default of ${name}: variables are not expanded there`)
  return fallback
}
