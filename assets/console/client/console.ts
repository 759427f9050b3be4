// Progressive enhancement of the console. Without this script, every form works by loading whole pages.
import 'htmx.org'
import { showWork } from './busy.ts'
import { copyOnClick } from './copy.ts'
import { followTrials } from './follow.ts'
import { followStream } from './live.ts'
import { answerWhole } from './swaps.ts'
import { chooseTheme } from './theme.ts'
import { showTimes } from './times.ts'

document.documentElement.classList.remove('no-script')
const stream = document.body.dataset.liveStream
if (stream !== undefined) followStream(stream)
copyOnClick()
followTrials()
showWork()
chooseTheme()
answerWhole()
showTimes()
// In a low window, the navigation scrolls.
document.querySelector('.pages [aria-current]')?.scrollIntoView({ block: 'nearest' })
