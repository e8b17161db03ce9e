/* What the search knows about languages: words, separated by spaces or lines.

   `light` words say that something is asked, and not what. They are not looked for,
   unless a query has no others. In Korean and Chinese they are also recognized where no
   space separates them.
   `endings` may follow a word in their language; in Korean also one another. `particles` join
   words without a space: a text that has a word with one says no more than one without.
   Each line of `same` is a set of words that mean the same in technical texts.

   All are in the form that the search folds to: lower case, without signs. */
"use strict";

globalThis.searchWords = {
  light: {
    en: `
      a about am an and any are as at be been between but by can cannot cant compared
      could did didnt difference differences different differ do does doesnt doing dont
      else exactly for from get gets getting give happen happens had has have having help
      how i if im in instead into is isnt it its just like may me mean meaning means might
      mine must my need needed needs of on or other our please possible really s shall
      should so some something t tell than that the their them then there these they thing
      things this those through to us use used uses using versus via vs want was way ways
      we well were what whats when where whether which while who whose why will with would
      you your`,
    ko: `
      가능 같은 거 건 걸 것 게 경우 그 꼭 나는 나오 내 너무 누가 다르 다른 다를 달라 대해
      대한 더 돼 되 된 될 둘 따로 때 또는 뜨 뜻 란 만드 만들 무슨 무엇 뭐 뭔 뭘 및 방법
      방식 법 보통 사용 생기 설명 수 싶 싶은 써 쓰 쓸 아니면 안 않 알고 알려 어느 어디
      어떡 어떤 어떻게 언제 얼마나 없 왜 우리 위한 위해 이 이건 이게 이렇게 이런 이유 인가
      일 일어나 있 저 저는 제 제가 제일 좀 좋 좋은 주 주세요 줘 중 지금 차이 차이점 하 한
      할 해 혹시`,
    zh: `
      一下 不同 与 两者 个 之间 为 为什么 为何 为啥 么 也 了 些 什么 什么时候 会 何 何时
      你 使用 做 关于 其 别的 不 未 到底 办法 区别 去 及 可以 可不可以 可否 吗 吧 呀 呢 和
      咋 咋办 哪 哪个 哪些 哪里 啊 啥 在 多少 如何 它 就 应当 应该 当 得 怎 怎么 怎么办
      怎么样 怎样 想 想要 意思 我 我们 或 或者 所 才 把 方法 时 时候 是 是否 更 有 没 没有
      然后 用 由 由于 的 着 知道 究竟 给 能 能不能 能否 自己 若 要 让 该 请 请问 跟 还
      还是 这 这个 这么 这些 这样 那 那么 都 里 需要 能够`,
  },
  endings: {
    en: "s es ed d e er ers or ors ing ings ion ions ation ations ment ly",
    ko: `
      은 는 이 가 을 를 의 에 에서 에게 로 으로 와 과 랑 이랑 도 만 까지 부터 처럼 보다 마다
      이나 나 란 이란 라는 이라는 들
      하 한 할 해 해서 해야 해요 했 합니다 합니까 되 된 될 돼 돼요 됐 됩니다 기 고 면 으면 려면
      으려면 려고 으려고 나 나요 는지 는가 는데 은가 가요 까요 인가 인가요 인지 이에요 예요 에요
      이죠 죠 야 지 지요 요 어요 아요 어서 아서 을 던 습니다 습니까 니까 으니까 도록 어도 아도
      지만 을까요 을까 었 았 게 다`,
  },
  particles: {
    zh: "的",
  },
  same: `
    python 파이썬
    pytorch 파이토치
    parameter 파라미터 매개변수 参数
    gradient 그래디언트 기울기 변화도 梯度
    device 디바이스 장치 设备
    method 메소드 메서드
    deadlock 데드락 교착 死锁
    allreduce 올리듀스 全归约
    allgather 올개더 全收集
    gather 개더
    memory 메모리 内存 显存
    collective 집합연산 집합통신 集合操作 集合通信
    asynchronous async nonblocking 비동기 논블로킹 异步 非阻塞
    install 설치 인스톨 安装
    error 에러 오류 错误 报错 出错
    hang hangs stuck freeze freezes frozen deadlock deadlocks
    die dies died dead crash crashes crashed fail fails failed failure
    machine machines computer computers server servers node nodes
    local 로컬 本地 局部
    version versions release releases
    example examples sample samples
    synchronize sync barrier
    restart resume recover
    accelerator npu tpu 가속기 加速器 加速卡
    minimal smallest simplest
    benchmark benchmarks measure performance 벤치마크 성능 측정 基准测试 基准 性能 测量
    communicator 커뮤니케이터 通信器 通信域
    deadline 데드라인 기한 截止时间
    noncontiguous 비연속 不连续 非连续
    oom outofmemory 메모리부족 内存不足 显存不足 显存不够 内存溢出
    버전 릴리스
    예제 예시 샘플
    서버 컴퓨터 머신 노드
    다운로드 내려받
    멈추 멈춰 멈춤 교착
    간단 작은 최소
    죽 실패
    동기화 배리어
    학습 훈련 트레이닝
    예외 에러 오류
    cpu 코어
    race 경합 경쟁
    例子 示例
    最简单 最简 最小
    封装 接入 对接
    进程组 通信组
    验证 测试
    机器 服务器 节点
    挂 崩溃 失败 故障
    卡住 卡死 死锁
    同步 屏障
    重启 重新启动
    恢复 重新启动`,
};
