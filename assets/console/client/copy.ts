/**
 * Makes each button `[data-copy]` copy the text of the `pre` beside it. For two seconds, the button then shows a tick
 * or, if copying failed, what to do.
 */
export function copyOnClick (): void {
  document.addEventListener('click', (event) => {
    const button = event.target instanceof Element ? event.target.closest<HTMLButtonElement>('[data-copy]') : null
    const text = button?.parentElement?.querySelector('pre')?.textContent
    const label = button?.querySelector('span')
    if (!button || !label || text === undefined || text === null) return
    const icon = button.querySelector('use')
    const iconHref = icon?.getAttribute('href') ?? ''
    void copy(text, button).then((isCopied) => {
      label.textContent = isCopied ? 'Copied' : 'Select and copy the text'
      label.setAttribute('role', 'status')
      label.classList.toggle('hidden-text', isCopied)
      if (isCopied) icon?.setAttribute('href', iconHref.replace('#copy', '#check'))
      setTimeout(() => {
        label.textContent = 'Copy'
        label.classList.add('hidden-text')
        icon?.setAttribute('href', iconHref.replace('#check', '#copy'))
      }, 2000)
    })
  })
}

/**
 * Copies a text. Outside a secure context, where there is no Clipboard API, or if that API fails, the text of the
 * `code` beside the button is selected and copied with `execCommand`.
 * @returns whether the text was copied
 */
async function copy (text: string, button: HTMLElement): Promise<boolean> {
  if (window.isSecureContext) {
    try {
      await navigator.clipboard.writeText(text)
      return true
    } catch {
      // The user may have denied the permission; `execCommand` may still work.
    }
  }
  const code = button.parentElement?.querySelector('code')
  if (!code) return false
  getSelection()?.selectAllChildren(code)
  return document.execCommand('copy')
}
